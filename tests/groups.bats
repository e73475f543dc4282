#!/usr/bin/env bats
# End to end once with each group of kernels (DLLM_CPU): logits, generations of
# both families, figures of dllm-score, the same bytes as from the scalar ones
# for 1, 2 and 7 threads.  A group that cannot run here is skipped by name, and
# only if the CPU is without it.
# shellcheck disable=SC2016,SC2034,SC2154 # literal text; set for bats or by run

load helpers
BATS_TEST_TIMEOUT=300

llada=$models/pocket-llada-q4_k_m.gguf
dream=$models/pocket-dream-f16-00001-of-00002.gguf

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	DLLM_CPU=scalar all 1 want
	[ "$(find want -type f | wc -l)" -eq 10 ]
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# all THREADS DIR: what there is to compare, in files of this folder
all() {
	local model name
	mkdir "$2"
	for model in "$llada" "$dream"; do
		name=$(basename "$model" .gguf)
		echo 1016 271 10 1020 1020 640 5 17 1020 >ids
		dllm-forward --model "$model" --threads "$1" \
		    --logits "$2/$name.npy" <ids
		dllm-forward --model "$model" --threads "$1" \
		    --activations f32 --logits "$2/$name-f32.npy" <ids
		dllm run --model "$model" --threads "$1" -n 8 --steps 6 \
		    --temperature 0.7 --trace trace \
		    'Tell me a story about a fox.' >"$2/$name.text"
		sed 's/"ms":[0-9.]*//' trace >"$2/$name.trace"
		printf '{"prompt":"%s","answer":"%s"}\n' 'What is 2 + 3?' \
		    '2 + 3 = 5.' | dllm score --model "$model" \
		    --threads "$1" --samples 4 --strata 2 >"$2/$name.score"
	done
}

# What the kernel says of this CPU, not what dllm has found out.
has_flags() {
	local flag
	for flag in "$@"; do
		grep -qwE "^(flags|Features).* $flag" /proc/cpuinfo || return
	done
}

# group NAME FLAG...: the CPU needs these flags of /proc/cpuinfo for it
group() {
	local name=$1
	shift
	if ! DLLM_CPU=$name dllm-forward --serve --model "$llada" \
	    </dev/null >greeting 2>err; then
		if [ $# -gt 0 ]; then
			run ! has_flags "$@"
		fi
		skip "$(sed "s/.*DLLM_CPU: //" err)"
	fi
	[[ $(<greeting) = *" kernel=$name "* ]]
	for n in 1 2 7; do
		DLLM_CPU=$name all $n "got-$n"
		diff -r "$BATS_FILE_TMPDIR/want" "got-$n" >&2
	done
}

@test "groups: scalar" {
	group scalar
}

@test "groups: avx2" {
	group avx2 avx2 fma f16c
}

@test "groups: avxvnni" {
	group avxvnni avx2 fma f16c avx_vnni
}

@test "groups: avx512vnni" {
	group avx512vnni avx2 fma f16c avx512f avx512bw avx512vl avx512dq \
	    avx512_vnni
}

@test "groups: neon" {
	group neon asimd
}

@test "groups: dotprod" {
	group dotprod asimd asimddp
}

@test "groups: i8mm" {
	group i8mm asimd i8mm
}

@test "groups: these are all" {
	run env DLLM_CPU=none dllm-forward --serve --model "$llada"
	[ "$status" -eq 2 ]
	[[ ${lines[0]} = *"'none': not one of scalar, avx2, avxvnni, avx512vnni, neon, dotprod, i8mm" ]]
}
