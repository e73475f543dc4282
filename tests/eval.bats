#!/usr/bin/env bats
# bench/eval, and that the figures in bench/results are what the reference's are
# within the stated margins.
# shellcheck disable=SC2034,SC2154 # set for bats or by run

load helpers
BATS_TEST_TIMEOUT=600

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# field NAME: a number from the JSON on standard input
field() {
	sed -n 's/.*"'"$1"'": \([0-9.]*\).*/\1/p'
}

@test "eval: the first twenty questions" {
	works "$top/bench/eval" "$models/pocket-llada-q4_k_m.gguf" 20
	printf '%s\n' "$output" >result
	[ "$(field items <result)" -eq 20 ]
	# The reference answers 16 of them right; one more or less is a near tie.
	right=$(head -n 20 "$golden/eval/answers-pocket-llada-q4_k_m.jsonl" |
		sed 's/^"//; s/"$//' | paste -d '\t' - <(head -n 20 \
		    "$golden/eval/pocket.jsonl" |
			sed 's/.*"answer": "\([^"]*\)".*/\1/') |
		awk -F '\t' '$1 == $2' | wc -l)
	[ "$right" -eq 16 ]
	got=$(field right <result)
	[ "$got" -ge 15 ]
	[ "$got" -le 17 ]
	[ "$(field same_as_reference <result)" -ge 17 ]
	[ "$(field arithmetic <result)" = 100.0 ]
}

@test "eval: recorded totals lie within the margins" {
	for name in llada-f16:86.0:1 llada-q8_0:86.0:3 llada-q4_k_m:85.7:3 \
	    llada-q8_0-f32:86.0:1 llada-q4_k_m-f32:85.7:1 \
	    dream-f16:81.7:1 dream-q8_0:81.7:3 dream-q4_k_m:81.0:3 \
	    dream-f16-t0.2:83.3:3 dream-q8_0-t0.2:83.3:3 \
	    dream-q4_k_m-t0.2:83.0:3; do
		IFS=: read -r file want margin <<<"$name"
		result=$top/bench/results/eval-pocket-$file.json
		[ "$(field items <"$result")" -eq 300 ]
		field percent <"$result" | awk -v w="$want" -v m="$margin" \
		    '{ exit !($1 >= w - m && $1 <= w + m) }'
		field wall_s <"$result" | awk '{ exit !($1 > 0 && $1 < 600) }'
		grep -q '"dirty": *false' "$result"
	done
}

@test "eval: usage" {
	usage='eval: usage: bench/eval MODEL [ITEMS [dllm-forward OPTION...]]'
	fails 2 "eval: ERROR: the model is missing
$usage" "$top/bench/eval"
	fails 2 "eval: ERROR: ITEMS 'all': not a number from 1 up
$usage" "$top/bench/eval" missing.gguf all
	run --separate-stderr "$top/bench/eval" missing.gguf
	[ "$status" -ne 0 ]
	[ -z "$output" ]
}
