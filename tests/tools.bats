#!/usr/bin/env bats
# What the start-up code of tools/tool.h does for every tool.
# shellcheck disable=SC2016,SC2034,SC2154 # inner shells; bats; helpers

load helpers
BATS_TEST_TIMEOUT=60

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	M=$models/pocket-llada-q4_k_m.gguf
	export M
	mkdir work
	cd work || return
}

@test "a closed standard output is an error, and no file becomes it" {
	echo 5 6 >in
	fails 1 'dllm-sample: ERROR: cannot write token lines: Bad file descriptor' \
		sh -c 'dllm-sample --max-tokens 4 --trace t -- fake-forward <in >&-'
	[ "$(ls -A)" = in ]
	fails 1 'dllm-sample: ERROR: cannot write token lines: Bad file descriptor' \
		sh -c 'dllm-sample --max-tokens 4 --share l -- fake-forward <in >&-'
	fails 1 'tok-encode: ERROR: cannot write token lines: Bad file descriptor' \
		sh -c 'tok-encode --model "$M" --prompt x >&-'
}

@test "a tool that writes nothing there needs no standard output" {
	works sh -c 'gguf-inspect --tensor output_norm.weight --output o.npy \
		"$M" >&-'
	works gguf-inspect --tensor output_norm.weight --output p.npy "$M"
	same o.npy p.npy
}

@test "a closed standard input is an error, and no file becomes it" {
	fails 1 'tok-encode: ERROR: cannot read standard input: Bad file descriptor' \
		sh -c 'tok-encode --model "$M" <&-'
	fails 1 'tok-decode: ERROR: cannot read standard input: Bad file descriptor' \
		sh -c 'tok-decode --model "$M" <&-'
	fails 1 'dllm-forward: ERROR: cannot read standard input: Bad file descriptor' \
		sh -c 'dllm-forward --model "$M" --logits f <&-'
	[ -z "$(ls -A)" ]
}

@test "a closed standard error hides messages and changes nothing else" {
	echo 5 6 >in
	dllm-sample --max-tokens 4 --trace t --verbose -- fake-forward <in >want \
		2>/dev/null
	dllm-sample --max-tokens 4 --trace u --verbose -- fake-forward <in >got \
		2>&-
	same want got
	[ "$(wc -l <t)" = "$(wc -l <u)" ]
}

@test "a limit on file sizes is an error and leaves nothing" {
	fails 1 "gguf-inspect: ERROR: cannot write 'o.npy': File too large" \
		bash -c 'ulimit -f 8
		gguf-inspect --tensor token_embd.weight --output o.npy "$M"'
	fails 1 "dllm-forward: ERROR: cannot write 'o.npy': File too large" \
		bash -c 'ulimit -f 8
		echo 1 2 3 4 5 6 | dllm-forward --model "$M" --logits o.npy'
	[ -z "$(ls -A)" ]
}
