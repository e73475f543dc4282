#!/usr/bin/env bats
# Whole models with matrices of every type that can be multiplied, in odd
# shapes: against the transformer in double precision (ref64), and against
# themselves with other numbers of threads.
# shellcheck disable=SC2034,SC2154 # set for bats or by run

load helpers
BATS_TEST_TIMEOUT=300
PATH=$BUILD/bench:$PATH

floats='F32 F16 BF16'
blocks32='Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 IQ4_NL MXFP4'
blocks256='Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_XS'

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	echo 5 17 298 0 40 41 299 >ids
}

# logits FILE OPTION...
logits() {
	dllm-forward --model m.gguf --logits "$@" <ids
}

# A model made with these options: with float activations it equals double
# precision, with those of 8 bits it is near, and threads change no bit.
check() {
	echo "gguf-synth $*" >&2
	gguf-synth "$@" --vocab 300 --output m.gguf
	ref64 --model m.gguf <ids >ref.npy
	logits f32.npy --activations f32 --threads 1
	npy-cmp --max-rel-l2 1e-5 --argmax clear f32.npy ref.npy >&2
	logits f32-7.npy --activations f32 --threads 7
	same f32.npy f32-7.npy
	logits q8.npy --threads 1
	npy-cmp --max-rel-l2 0.025 --argmax clear q8.npy f32.npy >&2
	for n in 2 7; do
		logits q8-n.npy --threads $n
		same q8.npy q8-n.npy
	done
}

# The same for a type whose activations are of 8 bits: it shows.
check_quantised() {
	check "$@"
	run npy-cmp --max-rel-l2 1e-3 q8.npy f32.npy
	[ "$status" -eq 1 ]
}

@test "types: the oracle gives the stages of other software" {
	echo 257 72 101 108 108 111 32 259 259 259 259 259 >ids
	for arch in llada dream; do
		mkdir "$arch"
		tiny-model --arch "$arch" --output m.gguf
		ref64 --model m.gguf --dump "$arch" <ids >ref.npy
		works "$top/pipelines/parity.sh" "$arch" \
		    "$golden/logits/tiny-$arch-f32/stages" --max-rel-l2 1e-7
		[ "${#lines[@]}" -eq 25 ]
	done
	for name in tiny-llada-q4km tiny-dream-q4km; do
		mkdir "$name"
		ref64 --model "$golden/models/$name.gguf" --dump "$name" <ids \
		    >ref.npy
		npy-cmp --max-rel-l2 1e-7 "$name/logits.npy" \
		    "$golden/logits/$name/logits-float64.npy"
	done
	# Those are rounded to f32; a part in a billion would be too much to ask.
	run npy-cmp --max-rel-l2 1e-9 "$name/logits.npy" \
	    "$golden/logits/$name/logits-float64.npy"
	[ "$status" -eq 1 ]
}

@test "types: the oracle rounds as llama.cpp does where it is told to" {
	echo 257 72 101 108 108 111 32 259 259 259 259 259 >ids
	for name in tiny-llada-q4km tiny-dream-q4km; do
		mkdir "$name"
		ref64 --model "$golden/models/$name.gguf" --round 256 \
		    --dump "$name" <ids >ref.npy
		npy-cmp --max-rel-l2 1e-6 "$name/logits.npy" \
		    "$golden/logits/$name/logits-llamacpp.npy" >&2
	done
}

# the relative L2 of two arrays, as an integer in units of 1e-6
distance() {
	npy-cmp --max-abs 1e30 "$1" "$2" |
		awk '$1 == "rel-l2" { printf "%.0f", $2 * 1e6 }'
}

@test "types: massive activations cost little with a scale per 32" {
	set -- --vocab 600 --embd 512 --ffn 1024 --heads 4
	echo 592 597 65 66 67 10 68 69 599 10 596 596 596 >ids
	for n in 0 1 4; do
		gguf-synth "$@" --outliers "$n" --output m.gguf
		mkdir "$n"
		ref64 --model m.gguf --dump "$n" <ids >ref.npy
		logits f32.npy --activations f32
		npy-cmp --max-rel-l2 1e-5 --argmax clear f32.npy ref.npy >&2
		logits q8.npy
		npy-cmp --max-rel-l2 0.02 --argmax clear q8.npy ref.npy >&2
		ref64 --model m.gguf --round 256 <ids >round.npy
		q8=$(distance q8.npy ref.npy)
		coarse=$(distance round.npy ref.npy)
		echo "outliers $n: $q8, with a scale per 256 $coarse" >&2
		[ "$q8" -lt "$coarse" ]
	done
	# They are there: a thousand in the stream, more in the feed-forward.
	run npy-cmp --max-abs 900 4/embd.npy 0/embd.npy
	[ "$status" -eq 1 ]
	npy-cmp --max-abs 1100 4/embd.npy 0/embd.npy
	run npy-cmp --max-abs 100 4/00.ffn_act.npy 0/00.ffn_act.npy
	[ "$status" -eq 1 ]
	# Only on control tokens and line feeds, not on text and masks.
	for row in 0 1 5 8 9; do
		run npy-cmp --rows "$row" --max-abs 900 4/embd.npy 0/embd.npy
		[ "$status" -eq 1 ]
	done
	npy-cmp --rows 2:3,6:2,10:3 --max-abs 20 4/embd.npy 0/embd.npy
}

@test "types: floats, rows of any length" {
	for type in $floats; do
		check --type "$type" --embd 66 --ffn 35 --heads 3
		check --type "$type" --tied --embd 96 --ffn 160 --heads 1
		cmp q8.npy f32.npy # --activations changes nothing
	done
}

@test "types: blocks of 32, rows of no multiple of 256, one head, tied" {
	for type in $blocks32; do
		check_quantised --type "$type" --tied --embd 96 --ffn 160 \
		    --heads 1
	done
}

@test "types: blocks of 32, seven queries to a key, biases" {
	for type in $blocks32 $floats; do
		check --type "$type" --family dream --embd 224 --ffn 288 \
		    --heads 7 --kv-heads 1
	done
}

@test "types: blocks of 256, one head, tied" {
	for type in $blocks256; do
		check_quantised --type "$type" --tied --embd 256 --ffn 768 \
		    --heads 1
	done
}

@test "types: blocks of 256, seven queries to a key, biases" {
	for type in $blocks256; do
		check_quantised --type "$type" --family dream --embd 1792 \
		    --ffn 256 --heads 7 --kv-heads 1 --layers 1
	done
}

@test "types: all types in one model" {
	for family in llada dream; do
		check_quantised --type mixed --family $family --embd 256 \
		    --ffn 512 --heads 8 --kv-heads 2 --layers 4
		gguf-inspect m.gguf | sed -n 's/^type \([^:]*\):.*/\1/p' |
			sort >found
		# shellcheck disable=SC2086 # lists of words
		printf '%s\n' $floats $blocks32 $blocks256 | sort >wanted
		same found wanted
		check_quantised --type mixed --family $family --embd 96 \
		    --ffn 416 --heads 3 --layers 4
	done
}
