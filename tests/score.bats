#!/usr/bin/env bats
# dllm-score: the tool.  tests/score.c checks the figures.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # literal text; set for
# bats or by run

load helpers
BATS_TEST_TIMEOUT=60

usage='dllm-score: usage: dllm-score [options] -- COMMAND [ARG...]'

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	llada=$models/pocket-llada-q4_k_m.gguf
	dream=$models/pocket-dream-q4_k_m.gguf
	printf '%s\n' '{"prompt":"What is 2 + 3?","answer":"2 + 3 = 5."}' \
	    '{"answer":"2 + 3 = 6.","kind":"wrong","prompt":"What is 2 + 3?"}' \
	    >pairs
}

# score FAKE-OPTION... [-- SCORE-OPTION...]: of the lines in the file in
score() {
	local fake=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		fake+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	dllm-score "$@" -- fake-forward "${fake[@]}" <in
}

# direct MODEL CANVAS POSITION ID: the loss by its definition, from dllm-forward
direct() {
	echo "$2" | dllm-forward --model "$1" --rows "$3:1" |
		tail -c +129 | od -An -v -t f4 | awk -v id="$4" '
		{ for (i = 1; i <= NF; i++) row[n++] = $i }
		END {
			for (i = 0; i < n; i++) if (i == 0 || row[i] > m) m = row[i]
			for (i = 0; i < n; i++) sum += exp(row[i] - m)
			printf "%.9g\n", m - row[id] + log(sum)
		}'
}

@test "dllm-score: losses are those of the logits, in both families" {
	for model in "$llada" "$dream"; do
		tok-encode --model "$model" --pairs pairs | sed 1,2d >in
		read -r -a prompt < <(sed -n 1p in)
		read -r -a answer < <(sed -n 2p in)
		last=$((${#answer[@]} - 1))
		dllm-score --mask "0:2,$last" -- dllm-forward --serve \
		    --model "$model" <in >got
		grep -q "masked=0,1,$last token_loss=" got
		sed 's/.*token_loss=\([^ ]*\).*/\1/; y/,/\n/' got >losses
		canvas="${prompt[*]} 1020 1020 ${answer[*]:2:last-2} 1020"
		for i in 0 1 "$last"; do
			direct "$model" "$canvas" $((${#prompt[@]} + i)) \
			    "${answer[i]}"
		done >want
		paste losses want | awk '
			{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 + 1e-5 * $2) bad = 1 }
			END { exit bad || NR != 3 }' ||
			{ paste losses want >&2; false; }
		sum=$(paste -sd+ losses)
		awk -v sum="$(awk "BEGIN { print $sum }")" -v n="${#answer[@]}" '{
			split($1, a, "="); split($2, b, "=")
			exit !(a[2] - sum < 1e-4 && sum - a[2] < 1e-4 &&
			    b[2] - sum * n / 3 < 1e-3 && sum * n / 3 - b[2] < 1e-3)
		}' got
	done
}

@test "dllm-score: the right answer is likelier, and what greedy decoding gives" {
	for model in "$llada" "$dream"; do
		tok-encode --model "$model" --pairs pairs |
			dllm-score --samples 32 --greedy -- dllm-forward \
			    --serve --model "$model" >got
		[ "$(sed 's/.* greedy=\([a-z]*\) .*/\1/' got | paste -sd,)" = yes,no ]
		sed 's/log_likelihood=\([^ ]*\) .*/\1/' got | awk '
			{ v[NR] = $1 } END { exit !(v[1] > v[2] + 1 && v[1] < 0) }'
	done
}

@test "dllm-score: equal seeds give equal bytes, wherever the pair stands" {
	tok-encode --model "$llada" --pairs pairs >both
	sed 1,2d both >second
	run_it() { dllm-score --samples 8 --cfg-scale 0.5 "$@" -- \
	    dllm-forward --serve --model "$llada"; }
	run_it <both >a
	run_it <both | cmp - a
	run_it <second >b
	tail -n 1 a | cmp - b
	run_it --seed 42 <second | cmp - b
	run_it --seed 43 <second >c
	run ! cmp -s b c
}

@test "dllm-score: lines and objects" {
	printf '4 5\n6 7 8\n' >in
	works score -- --samples 6 --strata 2
	[[ $output =~ ^log_likelihood=-[0-9.e+-]+\ standard_error=[0-9.e+-]+\ samples=6\ tokens=3\ forwards=[1-6]$ ]]
	line=$output
	works score -- --samples 6 --strata 2 --json --greedy
	[[ $output =~ ^\{\"log_likelihood\":-[0-9.e+-]+,\"standard_error\":[0-9.e+-]+,\"variance\":[0-9.e+-]+,\"samples\":6,\"greedy\":(true|false),\"greedy_ids\":\[[0-9]+,[0-9]+,[0-9]+\],\"tokens\":3,\"forwards\":[0-9]+\}$ ]]
	value=${line#log_likelihood=}
	[[ $output = "{\"log_likelihood\":${value%% *},"* ]]
	# One batch has no spread.
	works score -- --samples 4
	[[ $output = *' standard_error=unknown samples=4 '* ]]
	works score -- --samples 4 --json
	[[ $output = *',"standard_error":null,"variance":null,'* ]]
	works score -- --mask 1,2:1 --json
	[[ $output =~ ^\{\"loss_sum\":[0-9.e+-]+,\"loss_weighted\":[0-9.e+-]+,\"masked\":\[1,2\],\"token_loss\":\[[0-9.e+-]+,[0-9.e+-]+\],\"tokens\":3,\"forwards\":1\}$ ]]
	works score -- --mask 0 --cfg-scale 1
	[[ $output = *' masked=0 token_loss='*' forwards=2' ]]
	# Of one token there is one mask, of three there are seven.
	printf '4 5\n6\n4 5\n6 7 8\n' >in
	works score -- --samples 64
	[[ ${lines[0]} = *' standard_error=0 '*' forwards=1' ]]
	[[ ${lines[1]} = *' forwards=7' ]]
	# no prompt, and the model need not offer statistics
	printf '\n6 7\n' >in
	works score --no-stats -- --samples 4 --greedy
	# under guidance greedy decoding reduces logits itself
	works score -- --samples 4 --greedy --cfg-scale 1
	DLLM_CPU=scalar works score -- --samples 4 --greedy --cfg-scale 1
	DLLM_CPU=sse9 fails 2 "dllm-score: ERROR: DLLM_CPU: 'sse9': not one of \
scalar, avx2, avxvnni, avx512vnni, neon, dotprod, i8mm
$usage" score -- --greedy
}

@test "dllm-score: --verbose" {
	printf '4 5\n6 7\n' >in
	run --separate-stderr score -- --samples 2 --verbose
	[ "$status" -eq 0 ]
	printf '%s\n' "$stderr" | grep -q '^device: '
	printf '%s\n' "$stderr" | grep -q '^pair 1: [0-9.]* s$'
}

@test "dllm-score: wrong command lines" {
	fails 2 "dllm-score: ERROR: the command to run is missing (-- dllm-forward --serve --model PATH)
$usage" dllm-score
	fails 2 "dllm-score: ERROR: --samples '0': not in 1..2147483647
$usage" dllm-score --samples 0 -- true
	fails 2 "dllm-score: ERROR: --samples 10: not a multiple of --strata 4
$usage" dllm-score --samples 10 --strata 4 -- true
	fails 2 "dllm-score: ERROR: --mask excludes --samples and --strata
$usage" dllm-score --samples 10 --mask 0 -- true
	run --separate-stderr dllm-score --mask 3,1 -- true
	[ "$status" -eq 2 ]
	[[ $stderr = "dllm-score: ERROR: --mask '3,1': "* ]]
}

@test "dllm-score: wrong input" {
	: >in
	fails 1 'dllm-score: ERROR: standard input ended before a token line' score
	echo 4 >in
	fails 1 'dllm-score: ERROR: standard input ended before the answer of line 1' \
	    score
	printf '4\n5' >in
	fails 1 'dllm-score: ERROR: standard input ended inside a token line' score
	printf '4\n\n' >in
	fails 1 'dllm-score: ERROR: standard input: line 2: the answer is empty' \
	    score
	printf '4\n38 1\n' >in
	fails 1 'dllm-score: ERROR: standard input: line 2: the answer holds the mask token' \
	    score
	printf '4 38\n1\n' >in
	fails 1 'dllm-score: ERROR: standard input: line 1: the prompt holds the mask token' \
	    score
	printf '4 40\n1\n' >in
	fails 1 'dllm-score: ERROR: standard input: line 1: token 40 is outside the vocabulary of 40' \
	    score
	printf '\n1\n' >in
	fails 1 'dllm-score: ERROR: standard input: line 2: the prompt is empty, and this model cannot predict position 0' \
	    score --first 1
	printf '1 2\n3 4\n' >in
	fails 1 'dllm-score: ERROR: standard input: line 2: 2 tokens of prompt and 2 of answer exceed the longest request of 3' \
	    score --ctx 3
	fails 1 'dllm-score: ERROR: standard input: line 2: --mask 1:2: the answer has only 2 tokens' \
	    score -- --mask 1:2
}

@test "dllm-score: a forward that fails is named with its sample" {
	printf '1 2\n3 4 5 6 7 8 9 10 11 12 13 14 15 16\n' >in
	fails 1 "dllm-score: ERROR: cannot run 'no-such-program': No such file or directory" \
	    dllm-score -- no-such-program <in
	fails 1 'dllm-score: ERROR: fake-forward was killed by signal 9 in sample 2' \
	    score --how kill --at 2
	fails 1 'dllm-score: ERROR: fake-forward was killed by signal 9 in sample 0' \
	    score --how kill --at 0 -- --mask 0
	run --separate-stderr score --how nan
	[ "$status" -eq 1 ]
	[ -z "$output" ]
	[[ $stderr = 'dllm-score: ERROR: position '*': a logit is not finite' ]]
	run --separate-stderr score --how late
	[ "$status" -eq 1 ]
	[ "$stderr" = 'dllm-score: ERROR: fake-forward exited with status 7 at the end' ]
	run --separate-stderr sh -c 'dllm-score --samples 1 -- fake-forward <in >/dev/full'
	[ "$status" -eq 1 ]
	[ "$stderr" = 'dllm-score: ERROR: cannot write standard output: No space left on device' ]
}

@test "tok-encode: --pairs gives a prompt and an answer with its end in turn" {
	tok-encode --model "$llada" --pairs pairs >got
	[ "$(wc -l <got)" -eq 4 ]
	tok-encode --model "$llada" --prompt 'What is 2 + 3?' >want
	sed -n 3p got | cmp - want
	end=$(tok-encode --model "$llada" --no-chat --prompt '2 + 3 = 6.')
	[ "$(sed -n 4p got)" = "$end 1023" ]
	tok-encode --model "$dream" --pairs pairs | sed -n 2p | grep -q ' 1018$'
	tok-encode --model "$llada" --no-chat --pairs - <pairs | sed -n 4p >got
	[ "$(cat got)" = "$end" ]
	: >empty
	fails 1 'tok-encode: ERROR: empty: no pairs' \
	    tok-encode --model "$llada" --pairs empty
	echo '{"prompt":"x"}' >>pairs
	fails 1 'tok-encode: ERROR: pairs: line 3: no "answer"' \
	    tok-encode --model "$llada" --pairs pairs
	echo '{"prompt":1,"answer":"x"}' >bad
	fails 1 'tok-encode: ERROR: bad: line 1: "prompt" is not a string' \
	    tok-encode --model "$llada" --pairs bad
	echo '[]' >bad
	fails 1 'tok-encode: ERROR: standard input: line 1: not a JSON object' \
	    tok-encode --model "$llada" --pairs - <bad
}
