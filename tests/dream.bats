#!/usr/bin/env bats
# Dream, the second family: shifted rows, ChatML, its sampler's defaults, with
# the demo model.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # literal text; set for
# bats or by run

load helpers
BATS_TEST_TIMEOUT=120

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	q4=$models/pocket-dream-q4_k_m.gguf
	f16=$models/pocket-dream-f16-00001-of-00002.gguf
}

# sample OPTION...: the live loop on the prompt line in the file p
sample() {
	dllm-sample "$@" -- dllm-forward --serve --model "$q4" <p
}

@test "dream: the sum of the specification, quantised and not" {
	for model in "$q4" "$f16"; do
		works dllm run --model "$model" --prompt 'What is 37 + 48?' \
		    --max-tokens 32 --steps 32 --seed 42
		[ "$output" = '37 + 48 = 85.' ]
	done
}

@test "dream: the chat prompt is ChatML, by default with its system message" {
	want='1017 274 10 89 305 363 261 353 108 112 622 32 275 46 1018 10 1017 271 10 341 317 32 51 55 292 32 52 56 63 1018 10 1017 275 10'
	works tok-encode --model "$q4" --prompt 'What is 37 + 48?'
	[ "$output" = "$want" ]
	works tok-encode --model "$q4" --prompt 'What is 37 + 48?' \
	    --system 'You are a helpful assistant.'
	[ "$output" = "$want" ]
	works tok-encode --model "$q4" --prompt x --system y
	[[ $output = '1017 274 10 '*' 1018 10 1017 271 10 '*' 1018 10 1017 275 10' ]]
	[ "$(wc -w <<<"$output")" -eq 15 ]
	# No BOS, in chat or without: the file does not ask for one.
	works tok-encode --model "$q4" --no-chat --prompt x
	[ "$(wc -w <<<"$output")" -eq 1 ]
	# The real one, which such files do not name.
	works tok-encode --model "$q4" --no-chat --bos --prompt x
	[[ $output = '1019 '* ]]
}

@test "dream: row r predicts position r, from the row of the head before it" {
	echo 1017 274 10 1020 1020 7 >line
	dllm-forward --model "$q4" --dump stages <line
	dllm-forward --model "$q4" --logits all.npy <line
	dllm-forward --model "$q4" --rows 1:2,5:1 --logits some.npy <line
	row=$((4 * 1021))
	# all six rows of the head, the five that predict, three of these
	[ "$(wc -c <stages/logits.npy)" -eq $((128 + 6 * row)) ]
	[ "$(wc -c <all.npy)" -eq $((128 + 5 * row)) ]
	tail -c +129 stages/logits.npy | head -c $((5 * row)) >want
	tail -c +129 all.npy | cmp - want
	{
		head -c $((2 * row)) want
		tail -c "$row" want
	} >want.some
	tail -c +129 some.npy | cmp - want.some
}

@test "dream: position 0 cannot be predicted" {
	echo 1020 274 10 >p
	fails 1 'dllm-forward: ERROR: standard input: line 1: position 0 cannot be predicted by a model that predicts from the row before' \
	    dllm-forward --model "$q4" --rows 0:1 --logits no.npy <p
	[ ! -e no.npy ]
	fails 1 'dllm-sample: ERROR: standard input: line 1: position 0 is masked, and this model cannot predict it' \
	    sample --max-tokens 0
	fails 1 'dllm-sample: ERROR: standard input: line 1: position 0 is masked, and this model cannot predict it' \
	    sample --max-tokens 4
	echo >p # so the first new token would stand there
	fails 1 'dllm-sample: ERROR: standard input: line 1: position 0 is masked, and this model cannot predict it' \
	    sample --max-tokens 4
	echo 1017 >p
	works sample --max-tokens 4
}

@test "dream: defaults are entropy, temperature 0.2, top-p 0.95, one block" {
	tok-encode --model "$q4" --prompt 'Tell me a story about a fox.' >p
	sample --max-tokens 24 --trace a >default
	sample --max-tokens 24 --trace b --algorithm entropy \
	    --temperature 0.2 --top-p 0.95 --block-length 24 --steps 24 \
	    --alg-temp 0 --eps 0.001 >given
	same default given
	sed 's/"ms":[0-9.]*//' a >a.decisions
	sed 's/"ms":[0-9.]*//' b | cmp - a.decisions
	# temperature 0 alone takes top-p along
	sample --max-tokens 24 --temperature 0 --trace a >zero
	sample --max-tokens 24 --temperature 0 --top-p 1 --trace b >given
	same zero given
	sample --max-tokens 24 --temperature 0 --top-p 0.5 --trace c >/dev/null
	grep -o '"confidences":[^]]*' a >a.conf
	grep -o '"confidences":[^]]*' b | cmp - a.conf
	grep -o '"confidences":[^]]*' c >c.conf
	run ! cmp -s c.conf a.conf
}

@test "every algorithm on both families, defaults and noise" {
	for model in "$q4" "$models/pocket-llada-q4_k_m.gguf"; do
		for algorithm in llada origin maskgit_plus topk_margin entropy
		do
			works dllm run --model "$model" -n 16 --temperature 0 \
			    --algorithm "$algorithm" 'What is 2 + 3?'
			[ "$output" = '2 + 3 = 5.' ]
			works dllm run --model "$model" -n 16 --temperature 0.5 \
			    --top-p 0.9 --top-k 20 --steps 9 --seed 3 \
			    --algorithm "$algorithm" 'What is 2 + 3?'
			[ -n "$output" ]
		done
	done
}

@test "dream: steps that commit nothing run no forward and change nothing" {
	tok-encode --model "$q4" --prompt 'What is 2 + 3?' >p
	sample --max-tokens 16 --steps 64 --no-early-stop --trace t >/dev/null
	# floor(16 * (1 - t[s+1]/t[s])) is 0 for 49 steps, then 1; the last: 2
	[ "$(grep -c '"step":.*"forwards":0' t)" -eq 49 ]
	[ "$(grep -c '"step":.*"forwards":1' t)" -eq 15 ]
	tail -n 1 t | grep -q '"steps":64,"forwards":15,'
}

@test "dream: threads and kernels do not change a byte" {
	tok-encode --model "$q4" --prompt 'Tell me a story about a fox.' >p
	for n in 1 2 7; do
		dllm-sample --max-tokens 16 --temperature 1 --trace t -- \
		    dllm-forward --serve --threads "$n" --model "$q4" \
		    <p >"ids-$n"
		same ids-1 "ids-$n"
		sed 's/"ms":[0-9.]*//; s/"threads":[0-9]*//' t >"t-$n"
		same t-1 "t-$n"
	done
	DLLM_CPU=scalar sample --max-tokens 16 --temperature 1 >ids-scalar
	same ids-1 ids-scalar
}

@test "dream: one process per step equals the live loop" {
	tok-encode --model "$q4" --prompt 'What is 2 + 3?' >p
	for options in '' '--algorithm origin --temperature 1' \
	    '--algorithm maskgit_plus --alg-temp 0.5 --top-k 5' \
	    '--algorithm topk_margin --block-length 4'; do
		# shellcheck disable=SC2086 # several options
		sample --max-tokens 8 --steps 6 --no-early-stop --trace t \
		    $options >/dev/null
		grep '^{"step"' t |
			sed 's/.*"canvas":\[\([0-9,]*\)\].*/\1/; s/,/ /g' >live
		# shellcheck disable=SC2086 # several options
		"$top/pipelines/stepwise.sh" "$q4" 'What is 2 + 3?' 8 6 \
		    --no-early-stop $options >stepwise
		same live stepwise
	done
}

@test "a file of diffuse-cpp is refused, and said to be one" {
	{
		printf 'GGUF\3\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0'
		printf '\24\0\0\0\0\0\0\0general.architecture\10\0\0\0'
		printf '\7\0\0\0\0\0\0\0diffuse'
		printf '\22\0\0\0\0\0\0\0diffuse.model_type\10\0\0\0'
		printf '\5\0\0\0\0\0\0\0llada'
	} >d.gguf
	what='; a file of diffuse-cpp has no vocabulary, and q and k in another order: convert the original model with llama.cpp'
	fails 1 "dllm-forward: ERROR: d.gguf: unsupported model architecture: diffuse (supported: llada, dream)$what" \
	    dllm-forward --serve --model d.gguf </dev/null
	for tool in tok-encode tok-decode; do
		fails 1 "$tool: ERROR: d.gguf: required metadata key missing: tokenizer.ggml.model$what" \
		    "$tool" --model d.gguf </dev/null
	done
	fails 1 "tok-encode: ERROR: d.gguf: required metadata key missing: tokenizer.ggml.model$what" \
	    dllm run --model d.gguf x
	# gguf-inspect looks into any file.
	works gguf-inspect d.gguf
	[[ $output = *'key diffuse.model_type: string "llada"'* ]]
}
