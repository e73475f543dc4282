#!/usr/bin/env bats
# Whole generations against the reference's: text first, then every step.
# GENERATIONS=all takes all of them, not a sample.
# shellcheck disable=SC2016,SC2034,SC2154 # literal text; set for bats or by run

load helpers
BATS_TEST_TIMEOUT=600

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# settings: from golden data on standard input, each kind of generation once:
# what its lines contain, a tab, the options of dllm-sample
settings() {
	sed -n '
	s/.*\("block_length": \([0-9]*\), "steps": \([0-9]*\),\).*/\1	--block-length \2 --steps \3/p
	s/.*\("alg": "\([a-z_]*\)", "steps": \([0-9]*\),\).*/\1	--algorithm \2 --steps \3 --temperature 0/p
	' | sort -u
}

# compare MODEL FILE E EVERY FORWARD-OPTION...: generate anew every EVERYth line
# of the golden data of MODEL, in turn with 1, 2 and 7 threads; E is the largest
# error of a logit
compare() {
	local model=$1 file=$2 e=$3 every=$4 lines options turn=0
	shift 4
	case $BUILD in
	*/sanitize | */clang) every=12 ;; # once more
	esac
	[ "${GENERATIONS-}" != all ] || every=1
	settings <"$golden/generate/$model.jsonl" >kinds
	[ -s kinds ]
	: >compared
	while IFS=$'\t' read -r lines options <&9; do
		for threads in 1 2 7; do
			grep -F "$lines" "$golden/generate/$model.jsonl" |
				awk -v n="$every" -v turn=$turn '
				(NR - 1) % n == 0 && k++ % 3 == turn % 3' >want
			turn=$((turn + 1))
			# shellcheck disable=SC2086 # several options
			[ ! -s want ] || compare_lines "$model" "$file" "$e" \
			    $options -- --threads $threads "$@"
		done
		turn=$((turn + 1))
	done 9<kinds
	[ "$(wc -l <compared)" -eq \
	    $(($(wc -l <kinds) * ((12 + every - 1) / every))) ]
}

# compare_lines MODEL FILE E OPTION... -- FORWARD-OPTION...: the lines in want
compare_lines() {
	local model=$1 file=$2 e=$3 options=()
	shift 3
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	sed 's/.*"prompt_ids": \[\([0-9, ]*\)\].*/\1/; s/,//g' want >prompts
	sed 's/.*"text": "\([^"]*\)".*/\1/' want >texts
	dllm-sample --max-tokens 64 "${options[@]}" --no-early-stop \
	    --trace trace -- \
	    dllm-forward --serve --model "$models/$file" "$@" <prompts >ids
	tok-decode --model "$models/$file" --lines --stop <ids >answers
	diff texts answers >&2
	generations want trace "$e" >&2
	cat want >>compared
}

@test "generate: pocket-llada-q4_k_m, 8-bit activations" {
	compare pocket-llada-q4_k_m pocket-llada-q4_k_m.gguf 0.1 3
}

@test "generate: pocket-llada-q4_k_m, float activations" {
	compare pocket-llada-q4_k_m pocket-llada-q4_k_m.gguf 1e-3 6 \
	    --activations f32
}

@test "generate: pocket-llada-q8_0" {
	compare pocket-llada-q8_0 pocket-llada-q8_0.gguf 0.1 6
	compare pocket-llada-q8_0 pocket-llada-q8_0.gguf 1e-3 12 --activations f32
}

@test "generate: pocket-llada-f16" {
	compare pocket-llada-f16 pocket-llada-f16-00001-of-00002.gguf 1e-3 12
}

@test "generate: pocket-dream-q4_k_m, 8-bit activations" {
	compare pocket-dream-q4_k_m pocket-dream-q4_k_m.gguf 0.2 4
}

@test "generate: pocket-dream-q4_k_m, float activations" {
	compare pocket-dream-q4_k_m pocket-dream-q4_k_m.gguf 2e-5 6 \
	    --activations f32
}

@test "generate: pocket-dream-q8_0, 8-bit activations" {
	gguf-quantize --type Q8_0 --output q8_0.gguf \
	    --model "$models/pocket-dream-f16-00001-of-00002.gguf"
	models=. compare pocket-dream-q8_0 q8_0.gguf 0.2 4
}

@test "generate: pocket-dream-f16" {
	compare pocket-dream-f16 pocket-dream-f16-00001-of-00002.gguf 2e-5 6
}

@test "generate: the comparison can fail" {
	# without gaps and doubts nothing is a near tie
	grep '"steps": 32,' "$golden/generate/pocket-llada-q4_k_m.jsonl" |
		sed 's/"\(conf_gap\|logit_gap\|doubt\)": \[[^]]*\]/"\1": []/g; 1q' \
		    >want
	sed 's/.*"prompt_ids": \[\([0-9, ]*\)\].*/\1/; s/,//g' want >prompt
	dllm-sample --max-tokens 64 --block-length 64 --steps 32 --seed 5 \
	    --temperature 6 --no-early-stop --trace trace -- dllm-forward \
	    --serve --model "$models/pocket-llada-q4_k_m.gguf" <prompt >ids
	run generations want trace 0.1
	[ "$status" -eq 1 ]
	[[ $output = 'generation 0: wrong at step '* ]]
	head -n 9 trace >short
	run generations want short 0.1
	[ "$status" -eq 1 ]
}
