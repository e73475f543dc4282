#!/usr/bin/env bats
# The recipes in pipelines/, each executed.
# shellcheck disable=SC2016,SC2034,SC2154 # literal text; set for bats or by run

load helpers
BATS_TEST_TIMEOUT=300

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR/tmp
	mkdir tmp
	model=$models/pocket-llada-q4_k_m.gguf
	recipes=$top/pipelines
}

# nothing_left: no temporary file of a recipe
nothing_left() {
	[ -z "$(ls -A tmp)" ]
}

# live TOKENS STEPS OPTION...: the canvases of the live loop, a line each
live() {
	tok-encode --model "$model" --prompt 'What is 2 + 3?' |
		dllm-sample --max-tokens "$1" --steps "$2" "${@:3}" \
		    --trace trace -- \
		    dllm-forward --serve --model "$model" >final
	grep '^{"step"' trace |
		sed 's/.*"canvas":\[\([0-9,]*\)\].*/\1/; s/,/ /g' >canvases
}

# equals_live TOKENS STEPS OPTION...
equals_live() {
	live "$@" --no-early-stop
	[ "$(wc -l <canvases)" -eq "$2" ]
	"$recipes/stepwise.sh" "$model" 'What is 2 + 3?' "$@" --no-early-stop \
	    >stepwise
	same canvases stepwise
	nothing_left
}

@test "generate.sh: prompt to text" {
	works "$recipes/generate.sh" "$model" 'What is 37 + 48?' --max-tokens 32
	[ "$output" = '37 + 48 = 85.' ]
}

@test "stepwise.sh: every canvas equals that of the live loop" {
	equals_live 12 12
	# The live loop printed the generated part, the end of the last canvas.
	[[ $(tail -n 1 stepwise) = *" $(cat final)" ]]
	works tok-decode --model "$model" --stop <final
	[ "$output" = '2 + 3 = 5.' ]
}

@test "stepwise.sh: the same with noise, for several seeds" {
	for seed in 1 18446744073709551615; do
		equals_live 8 5 --temperature 5 --seed "$seed"
		mv stepwise "seed-$seed"
	done
	run ! cmp seed-1 seed-18446744073709551615
}

@test "stepwise.sh: the same with blocks, more steps than tokens, end tokens last" {
	equals_live 10 4 --block-length 4 --remasking random
	equals_live 6 9 --block-length 3 --demote-eos --temperature 0.5
}

@test "stepwise.sh: after the early stop the canvas stays" {
	live 8 5 --temperature 5 --seed 1
	"$recipes/stepwise.sh" "$model" 'What is 2 + 3?' 8 5 \
	    --temperature 5 --seed 1 >stepwise
	n=$(wc -l <canvases)
	[ "$n" -lt 5 ]
	head -n "$n" stepwise | cmp - canvases
	[ "$(tail -n $((5 - n)) stepwise | sort -u)" = "$(tail -n 1 canvases)" ]
}

@test "stepwise.sh: the same with guidance" {
	equals_live 8 4 --cfg-scale 1.5 --temperature 0.3
}

@test "fifo.sh: text, and both directions of the protocol" {
	works "$recipes/fifo.sh" "$model" 'What is 2 + 3?' log --max-tokens 8
	[ "$output" = '2 + 3 = 5.' ]
	nothing_left
	head -n 1 log.replies | grep -q '^dllm-forward 1 .*vocab=1024 mask=1020 '
	head -n 1 log.requests | grep -q '^forward [0-9]* rows=[0-9:,]* .* : 1016 '
	[ "$(wc -l <log.requests)" -eq "$(grep -c ^ok log.replies)" ]
}

@test "fifo.sh: failures end it and leave nothing" {
	run --separate-stderr "$recipes/fifo.sh" "$model" x log --steps no
	[ "$status" -ne 0 ]
	[[ $stderr = *"dllm-sample: ERROR: --steps 'no'"* ]]
	nothing_left
	run --separate-stderr "$recipes/fifo.sh" missing.gguf x log
	[ "$status" -ne 0 ]
	nothing_left
	run --separate-stderr "$recipes/fifo.sh" "$model" x missing/log
	[ "$status" -ne 0 ]
	[ -z "$output" ]
	nothing_left
}

@test "replay.sh: a recorded log gives the same replies and the logits" {
	"$recipes/fifo.sh" "$model" 'What is 2 + 3?' log --max-tokens 8 >text
	works "$recipes/replay.sh" "$model" log.requests
	printf '%s\n' "$output" | sed 's/ ms=.*//' >again
	sed 's/ ms=.*//' log.replies >recorded
	same recorded again
	works "$recipes/replay.sh" "$model" log.requests last.npy
	[ "$(printf '%s\n' "$output" | grep -c '^ok .* bytes=')" -eq \
	    "$(wc -l <log.requests)" ]
	head -c 6 last.npy | grep -q NUMPY
}

@test "recipes: without arguments they say how they are used" {
	for recipe in "$recipes"/*.sh; do
		fails 2 "$(sed -n 's/^# \(usage: \)/\1/p' "$recipe")" "$recipe"
		[ -n "$stderr" ]
	done
}
