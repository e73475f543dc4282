#!/usr/bin/env bats
# tests/ref/run: a model checked as a user does it, here the demo model.
# shellcheck disable=SC2034,SC2154 # set for bats or by run

load helpers
BATS_TEST_TIMEOUT=120

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export BUILD
	ref=$top/tests/ref
	model=$models/pocket-llada-q4_k_m.gguf
}

@test "tests/ref/run: the demo model, a report" {
	works "$ref/run" --output out --tokens 8 --threads 2 "$model"
	[ "$output" = "$(cat out/report.txt)" ]
	[ "${lines[0]}" = 'model: pocket-llada-q4_k_m.gguf' ]
	[ "$(grep -c '^ok ' out/report.txt)" -eq 3 ]
	grep -q '^  37 + 48 = ' out/report.txt
	[ "$(grep -c '^  ms a step: median [0-9.]*, .* (8 steps)$' out/report.txt)" -eq 3 ]
	grep -q '^       rel-l2 0\.00' out/report.txt
	[ "${lines[-1]}" = 'result: all checks hold' ]
	[ "$(wc -w <out/live-answer)" -eq 8 ]
	# a full array for the prompt and 8 masks
	run -1 npy-cmp out/q8.npy out/f32.npy
	[ "${lines[0]}" = 'shape 28,1024' ]
}

@test "tests/ref/run: a check that does not hold, and a file that is none" {
	mkdir fake
	mkdir fake/bin
	ln -s "$BUILD"/bin/* fake/bin
	printf '#!/bin/sh\necho other bytes\nexit 1\n' >fake/bin/cmp
	chmod +x fake/bin/cmp
	BUILD=$PWD/fake run --separate-stderr "$ref/run" --output out --tokens 2 "$model"
	[ "$status" -eq 1 ]
	[ "$(grep -c '^DIFFER ' out/report.txt)" -eq 2 ]
	grep -q '^    other bytes$' out/report.txt
	[ "${lines[-1]}" = 'result: FAILED' ]
	echo no model >none
	run --separate-stderr "$ref/run" --output out none
	[ "$status" -eq 2 ]
	[ "${stderr_lines[0]}" = 'FAILED the facts' ]
	[[ ${stderr_lines[1]} = '    gguf-inspect: ERROR: none: '* ]]
}

@test "tests/ref/run: usage" {
	local want='usage: tests/ref/run [--output DIR] [--tokens N] [--threads N] MODEL.gguf'
	fails 2 "$want" "$ref/run"
	fails 2 "$want" "$ref/run" --tokens x "$model"
	fails 2 "$want" "$ref/run" --tokens
	fails 2 "$want" "$ref/run" "$model" "$model"
	fails 2 "$want" "$ref/run" --else "$model"
}

@test "tests/ref: the Python program compiles" {
	command -v python3 >/dev/null || skip 'no python3 here'
	python3 -c 'import sys; compile(open(sys.argv[1]).read(), "x", "exec")' \
	    "$ref/dump-pytorch.py"
}
