#!/usr/bin/env bats
# dllm-infill: holes to text, with a stand-in for the sampler and for real.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # literal text; set for
# bats or by run

load helpers
BATS_TEST_TIMEOUT=60

usage='dllm-infill: usage: dllm-infill --model PATH [options] -- COMMAND [ARG...]'

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	llada=$models/pocket-llada-q4_k_m.gguf
	dream=$models/pocket-dream-q4_k_m.gguf
	# A sampler that writes down the line and puts A, B, C ... into masks.
	cat >fill <<-'END'
	#!/bin/sh
	while IFS= read -r line; do
		echo "$line" >sent
		for id in $line; do
			[ "$id" != 1020 ] || { id=$((65 + n)); n=$((n + 1)); }
			out="$out${out:+ }$id"
		done
		echo "$out"
		out=
	done
	END
	chmod +x fill
}

# infill OPTION...: with the stand-in
infill() {
	dllm-infill --model "$llada" "$@" -- ./fill
}

encode() {
	tok-encode --model "$llada" --no-chat --prompt "$1"
}

@test "dllm-infill: text around each hole is tokenised apart" {
	works infill --text 'The cat[MASK] on the[MASK:3]mat.'
	[ "$output" = 'The catA on theBCDmat.' ]
	{
		encode 'The cat'
		echo 1020
		encode ' on the'
		echo 1020 1020 1020
		encode 'mat.'
	} | paste -sd' ' >want
	same want sent
	works infill --text '[MASK][MASK:2]'
	[ "$output" = ABC ]
	[ "$(cat sent)" = '1020 1020 1020' ]
	works infill --text 'x[MASK]' --bos
	[ "$output" = xA ]
	[ "$(cat sent)" = "1016 $(encode x) 1020" ]
}

@test "dllm-infill: --fill-only gives a JSON string for each hole" {
	works infill --fill-only --text '[MASK:2] "and" [MASK][MASK:2].'
	[ "$output" = $'"AB"\n"C"\n"DE"' ]
	sed 's/65 + n/10/' fill >lf && chmod +x lf
	works dllm-infill --model "$llada" --fill-only --text 'a[MASK:2]' -- ./lf
	[ "$output" = '"\n\n"' ]
}

@test "dllm-infill: standard input and files, bytes as they are" {
	printf 'one [MASK]\n\ntwo\n' >text
	infill <text >got
	printf 'one A\n\ntwo\n' | cmp - got
	infill --text-file text | cmp - got
	infill --text-file - <text | cmp - got
	printf 'no end: [MASK]' | infill >got
	printf 'no end: A' | cmp - got
	printf 'bad \377 [MASK] \0 ' >text
	infill --text-file text >got
	printf 'bad \377 A \0 ' | cmp - got
	printf 'def f(x):\n' >pre
	printf '\n\treturn [MASK]\n' >post
	infill --prefix pre --suffix post --hole 3 >got
	{ cat pre; printf ABC; cat post; } | cmp - got
	infill --prefix pre --hole 2 >got
	{ cat pre; printf AB; } | cmp - got
	infill --suffix post --hole 2 --fill-only >got
	echo '"AB"' | cmp - got
}

@test "dllm-infill: text that only looks like a hole stays" {
	works infill --text '[mask] [MASK [MASKED] [MASK[MASK]'
	[ "$output" = '[mask] [MASK [MASKED] [MASKA' ]
	rm sent
	for bad in '[MASK:]' '[MASK:0]' '[MASK:x]' '[MASK:1' '[MASK:2000000]' \
	    '[MASK:99999999999999999999999]' '[MASK:-1]'; do
		fails 1 'dllm-infill: ERROR: hole 2: not [MASK] or [MASK:N], N from 1 to 1048576' \
		    infill --text "a[MASK]b$bad c"
	done
	[ ! -e sent ]
	fails 1 'dllm-infill: ERROR: the text has no [MASK]' infill --text 'a'
	fails 1 'dllm-infill: ERROR: the text has no [MASK]' infill --text ''
}

@test "dllm-infill: control tokens only with --special" {
	works infill --text '<|eot_id|>[MASK]'
	[ "$(wc -w <sent)" -gt 3 ]
	works infill --special --text '<|eot_id|>[MASK]'
	[ "$(cat sent)" = '1023 1020' ]
	[ "$output" = '<|eot_id|>A' ]
}

@test "dllm-infill: the real sampler, both families" {
	for model in "$llada" "$dream"; do
		dllm-infill --model "$model" --text 'The [MASK:2] is[MASK] the sea.' -- \
		    dllm-sample --max-tokens 0 -- dllm-forward --serve \
		    --model "$model" >a
		dllm infill --model "$model" 'The [MASK:2] is[MASK] the sea.' >b
		same a b
		grep -qx 'The .* is.* the sea\.' a
		dllm infill --model "$model" --fill-only --steps 2 --seed 7 \
		    --no-eos 'The [MASK:2] is[MASK] the sea.' >c
		[ "$(grep -c '^".*"$' c)" -eq 2 ]
	done
	# It is the canvas that dllm-sample fills.
	ids=$(tok-encode --model "$llada" --no-chat --special --prompt \
	    'The <|mdm_mask|><|mdm_mask|> is<|mdm_mask|> the sea.')
	echo "$ids" | dllm-sample --max-tokens 0 -- dllm-forward --serve \
	    --model "$llada" | tok-decode --model "$llada" >want
	dllm infill 'The [MASK:2] is[MASK] the sea.' >a
	echo >>want
	same want a
}

@test "dllm-infill: --prompt: the text is an answer in a chat" {
	works infill --prompt 'What is 2 + 3?' --text '2 + 3 =[MASK:2].'
	[ "$output" = '2 + 3 =AB.' ]
	{
		tok-encode --model "$llada" --prompt 'What is 2 + 3?'
		encode '2 + 3 ='
		echo 1020 1020
		encode .
		echo 1023
	} | paste -sd' ' >want
	same want sent
	for model in "$llada" "$dream"; do
		works dllm infill --model "$model" --prompt 'What is 2 + 3?' \
		    '2 + 3 =[MASK:2].'
		[ "$output" = '2 + 3 = 5.' ]
		works dllm infill --model "$model" -p 'What is 2 + 3?' \
		    --fill-only '[MASK] + 3 =[MASK:2].'
		[ "$output" = $'"2"\n" 5"' ]
	done
}

@test "dllm-infill: an end token in a hole ends nothing" {
	printf '#!/bin/sh\nread -r a; echo "$a" | sed "s/1020/1017/g"\n' >fill
	works infill --text 'a[MASK]b[MASK]c'
	[ "$output" = abc ]
	works infill --fill-only --text 'a[MASK]b[MASK]c'
	[ "$output" = $'""\n""' ]
}

@test "dllm-infill: a hole at position 0 of a shifted model is an error" {
	run --separate-stderr dllm infill --model "$dream" '[MASK:2] is blue.'
	[ "$status" -eq 1 ]
	[ -z "$output" ]
	[ "${stderr_lines[0]}" = 'dllm-sample: ERROR: standard input: line 1: position 0 is masked, and this model cannot predict it' ]
	works dllm infill --model "$dream" --bos '[MASK:2] is blue.'
	works dllm infill --model "$llada" '[MASK:2] is blue.'
}

@test "dllm-infill: wrong command lines" {
	fails 2 "dllm-infill: ERROR: --model is required
$usage" dllm-infill -- true
	fails 2 "dllm-infill: ERROR: --text and --text-file exclude each other
$usage" infill --text a --text-file b
	fails 2 "dllm-infill: ERROR: --prefix and --suffix exclude --text and --text-file
$usage" infill --text a --suffix b --hole 1
	fails 2 "dllm-infill: ERROR: --prefix and --suffix need --hole
$usage" infill --prefix b
	fails 2 "dllm-infill: ERROR: --hole needs --prefix or --suffix
$usage" infill --hole 2
	fails 2 "dllm-infill: ERROR: the command to run is missing (-- dllm-sample --max-tokens 0 -- dllm-forward --serve --model PATH)
$usage" dllm-infill --model "$llada" --text a
}

@test "dllm-infill: what fails, says so" {
	fails 1 "dllm-infill: ERROR: cannot open 'no': No such file or directory" \
	    infill --text-file no
	fails 1 "dllm-infill: ERROR: cannot open 'no.gguf': No such file or directory" \
	    dllm-infill --model no.gguf --text '[MASK]' -- ./fill
	fails 1 "dllm-infill: ERROR: cannot run './none': No such file or directory" \
	    dllm-infill --model "$llada" --text '[MASK]' -- ./none
	fails 4 'dllm-infill: ERROR: sh exited with status 4 before it answered' \
	    dllm-infill --model "$llada" --text '[MASK]' -- sh -c 'exit 4'
	fails 1 'dllm-infill: ERROR: sh was killed by signal 9 before it answered' \
	    dllm-infill --model "$llada" --text '[MASK]' -- sh -c 'kill -KILL $$'
	# they read first: a child that is gone before it was asked is another case
	fails 1 'dllm-infill: ERROR: sh answered with 2 ids, not 1 (has it --max-tokens 0?)' \
	    dllm-infill --model "$llada" --text '[MASK]' -- sh -c 'read -r a; echo 1 2'
	fails 1 'dllm-infill: ERROR: sh: byte 1: not a token id' \
	    dllm-infill --model "$llada" --text '[MASK]' -- sh -c 'read -r a; echo x'
	fails 3 'dllm-infill: ERROR: sh exited with status 3 at the end' \
	    dllm-infill --model "$llada" --text '[MASK]' -- \
	    sh -c 'cat; exit 3'
	run --separate-stderr sh -c 'dllm-infill --model "$1" --text "[MASK]" -- ./fill >/dev/full' - "$llada"
	[ "$status" -eq 1 ]
	[ "$stderr" = 'dllm-infill: ERROR: cannot write standard output: No space left on device' ]
}
