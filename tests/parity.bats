#!/usr/bin/env bats
# parity.sh: two folders of stages, down to the stage where they part.
# shellcheck disable=SC2034,SC2154 # set for bats or by run

load helpers
BATS_TEST_TIMEOUT=60

parity=$top/pipelines/parity.sh

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	echo 257 72 101 108 108 111 32 259 259 259 259 259 >ids
}

# dump NAME OPTION...: a folder of stages
dump() {
	dllm-forward --dump "$@" <ids
}

@test "parity.sh: the stages of other software, both families" {
	for arch in llada dream; do
		tiny-model --arch "$arch" --output "$arch.gguf"
		dump "$arch" --model "$arch.gguf"
		works "$parity" "$arch" "$golden/logits/tiny-$arch-f32/stages"
		[ "${#lines[@]}" -eq 25 ]
		[ "${lines[0]}" = 'embd rel-l2 0' ]
		[[ ${lines[2]} = '00.q rel-l2 '*e-07 ]]
		[[ ${lines[24]} = 'logits rel-l2 '*e-07 ]]
	done
}

@test "parity.sh: activations of 8 bits part at the first product" {
	model=$golden/models/tiny-llada-q4km.gguf
	stages=$golden/logits/tiny-llada-q4km/stages
	dump f32 --model "$model" --activations f32
	works "$parity" f32 "$stages"
	dump q8 --model "$model"
	run --separate-stderr "$parity" q8 "$stages"
	[ "$status" -eq 1 ]
	[ -z "$stderr" ]
	[[ ${lines[1]} = '00.attn_norm rel-l2 '* ]]
	[ "${lines[3]}" = '00.q is the first stage that differs:' ]
	[ "${lines[-1]}" = 'result differ: rel-l2' ]
	works "$parity" q8 "$stages" --max-rel-l2 0.02 --argmax clear
	[ "${#lines[@]}" -eq 25 ]
}

@test "parity.sh: two equal dumps, and one with a stage changed" {
	model=$golden/models/tiny-dream-q4km.gguf
	dump a --model "$model" --threads 1
	dump b --model "$model" --threads 3
	works "$parity" a b --max-abs 0
	[ "${#lines[@]}" -eq 25 ]
	cp b/01.k.npy b/01.v.npy
	run --separate-stderr "$parity" a b --max-abs 0
	[ "$status" -eq 1 ]
	[[ $output = *'01.v is the first stage that differs:'* ]]
	rm b/00.out.npy
	run --separate-stderr "$parity" a b --max-abs 0
	[ "$status" -eq 2 ]
	[ "$stderr" = "npy-cmp: ERROR: cannot open 'b/00.out.npy': No such file or directory" ]
	# a layer that only one folder has
	cp a/01.attn_norm.npy b/02.attn_norm.npy
	cp a/00.out.npy b
	cp a/01.v.npy b
	run --separate-stderr "$parity" a b --max-abs 0
	[ "$status" -eq 2 ]
	[ "$stderr" = "npy-cmp: ERROR: cannot open 'a/02.attn_norm.npy': No such file or directory" ]
}

@test "parity.sh: usage" {
	fails 2 'usage: parity.sh DUMP REFERENCE [npy-cmp OPTION...]   (--max-rel-l2 1e-5)' \
	    "$parity" a
}
