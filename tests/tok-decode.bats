#!/usr/bin/env bats
# tok-decode: output forms, ids that arrive slowly, and failures.
# shellcheck disable=SC2034,SC2154 # set for bats, set by run

load helpers
BATS_TEST_TIMEOUT=60

usage='tok-decode: usage: tok-decode --model PATH [OPTION ...]'

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	llada=$models/pocket-llada-q4_k_m.gguf
}

decode() {
	tok-decode --model "$llada" "$@"
}

# gives TEXT LINES OPTION...: exactly these bytes (printf %b) for these lines
gives() {
	printf '%b' "$1" >want
	printf '%b' "$2" >in
	shift 2
	decode "$@" <in >got
	od -c got >&2
	cmp want got
}

# bad MESSAGE LINES OPTION...
bad() {
	local want=$1
	printf '%b' "$2" >in
	shift 2
	fails 1 "tok-decode: ERROR: standard input$want" decode "$@" <in
}

@test "tok-decode: the bytes and nothing else" {
	gives 'Hi' '72 105\n'
	gives 'Hi\n' '72 105 10\n'
	gives '\0377\0000\0303' '255 0 195\n'
	gives '' '\n'
	gives 'HiHi' '72 105\n\n72 105\n'
}

@test "tok-decode: control tokens, masks and --special" {
	gives 'Hi' '1016 72 1020 105 1023 1017\n'
	gives '<|startoftext|>H<|mdm_mask|>i<|eot_id|>' '1016 72 1020 105 1023\n' --special
}

@test "tok-decode: --stop ends each line before its first end token" {
	gives 'HiH' '72 105 1023 72\n72 1017 1017\n1017 105\n' --stop
	gives 'H<|mdm_mask|>' '72 1020 1023 72\n' --stop --special
}

@test "tok-decode: --lines escapes, --null does not" {
	gives 'Hi\\n\\\\n\n\n' '72 105 10 92 110\n\n' --lines
	gives 'Hi\n\\n\0000\0000' '72 105 10 92 110\n\n' --null
}

@test "tok-decode: --json" {
	gives '{"text":"Hi\\n","tokens":[72,105,10]}\n{"text":"","tokens":[]}\n' '72 105 10\n\n' --json
	gives '{"text":"\0357\0277\0275a\\u0000","tokens":[195,97,0]}\n' '195 97 0\n' --json
	gives '{"text":"H","tokens":[72,1023,105]}\n' '72 1023 105\n' --json --stop
	gives '{"text":"H<|eot_id|>","tokens":[72,1023]}\n' '72 1023\n' --json --special
}

@test "tok-decode: objects keep their members, the text goes in front" {
	gives '{"text":"H","tokens":[72,1023],"seed":18446744073709551615,"x":{"y":[1.50]}}\n' \
	    '{"tokens":[72,1023],"seed":18446744073709551615,"x":{"y":[1.50]}}\n' --json --stop
	gives '{"text":"", "tokens" : [ ] }\n{"text":"H","tokens":[72]}\n' \
	    '{ "tokens" : [ ] }\n72\n' --json
}

@test "tok-decode: bad objects" {
	bad ': line 1: the object has no array "tokens"' '{"a":1}\n' --json
	bad ': line 1: the object has no array "tokens"' '{"tokens":"1"}\n' --json
	bad ': line 1: the object has a "text" already' '{"tokens":[72],"text":"H"}\n' --json
	bad ': line 1: "tokens" holds what is no token id' '{"tokens":[72.5]}\n' --json
	bad ': line 1: "tokens" holds what is no token id' '{"tokens":[-1]}\n' --json
	bad ': line 1: "tokens" holds what is no token id' '{"tokens":[null]}\n' --json
	bad ': line 1: token id 1024 is not in the vocabulary (0 to 1023)' '{"tokens":[1024]}\n' --json
	bad ': line 1: byte 12: a JSON value expected' '{"tokens":[\n' --json
	bad ': line 1: byte 1: not a token id' '{"tokens":[72]}\n'
}

@test "tok-decode: what was encoded comes back" {
	printf 'def f(x):\n\treturn "caf\303\251 \344\270\255\346\226\207 \360\237\230\200"\\\n' >text
	tok-encode --model "$llada" --no-chat <text | decode >back
	same text back
	tok-encode --model "$llada" --no-chat --lines <text | decode --lines |
		sed 's/\\\\/\\/g' >back
	same text back
}

@test "tok-decode: malformed lines" {
	bad ' ended before a token line' ''
	bad ' ended inside a token line' '72'
	bad ' ended inside a token line' '72 '
	bad ': line 1: byte 4: not a token id' '72  105\n'
	bad ': line 1: byte 3: not a token id' '72 \n'
	bad ': line 1: byte 1: not a token id' ' 72\n'
	bad ': line 1: byte 1: not a token id' '072\n'
	bad ': line 1: byte 1: not a token id' '-1\n'
	bad ': line 1: byte 3: not a token id' '72\r\n'
	bad ': line 1: byte 1: the token id is above 2147483647' '2147483648\n'
}

@test "tok-decode: an id outside the vocabulary is named, its line not printed" {
	bad ': line 1: token id 1024 is not in the vocabulary (0 to 1023)' '72 1024 72\n'
	bad ': line 1: token id 1024 is not in the vocabulary (0 to 1023)' '1023 1024\n' --stop
	printf '72\n105 1024\n' >in
	run --separate-stderr decode <in
	[ "$status" -eq 1 ]
	[ "$output" = H ]
	[ "$stderr" = 'tok-decode: ERROR: standard input: line 2: token id 1024 is not in the vocabulary (0 to 1023)' ]
}

# feed PIECE...: what each step adds to the output while the input stays open
feed() {
	mkfifo pipe
	decode "${options[@]}" <pipe >out 2>err 3>&- &
	pid=$!
	exec 4>pipe
	: >want
}

# step PIECE TEXT: after this input the output has grown by this text
step() {
	printf '%b' "$1" >&4
	printf '%b' "$2" >>want
	wait_until 10 cmp -s want out
}

@test "tok-decode: text appears as ids arrive" {
	options=()
	feed
	step '72 ' H
	step '1' ''
	step '05 72' i
	step ' ' H
	step '10' ''
	step '5\n' i
	step '10 33 72\n72 ' '\n!HH'
	step '105\n' i
	exec 4>&-
	wait "$pid"
	[ ! -s err ]
	cmp want out
}

@test "tok-decode: text appears as ids arrive, up to the end token, escaped" {
	options=(--stop --lines)
	feed
	step '72 10 ' 'H\\n'
	step '1023 ' ''
	step '72 ' ''
	exec 4>&-
	run wait "$pid"
	[ "$(cat err)" = 'tok-decode: ERROR: standard input ended inside a token line' ]
	[ "$(cat out)" = 'H\n' ]
}

@test "tok-decode: an error in a line that arrives slowly has the right byte" {
	options=()
	feed
	step '72 105 ' Hi
	printf ' 72\n' >&4
	exec 4>&-
	wait "$pid" || status=$?
	[ "$status" -eq 1 ]
	[ "$(cat err)" = 'tok-decode: ERROR: standard input: line 1: byte 8: not a token id' ]
}

@test "tok-decode: a line of a million ids" {
	yes '72 105' | head -500000 | tr '\n' ' ' | sed 's/ $/\n/' >in
	[ "$(decode <in | wc -c)" -eq 1000000 ]
}

@test "tok-decode: wrong command lines and files" {
	fails 2 "tok-decode: ERROR: --model is required
$usage" tok-decode
	fails 2 "tok-decode: ERROR: --lines and --null exclude each other
$usage" decode --lines --null
	fails 2 "tok-decode: ERROR: --lines and --json exclude each other
$usage" decode --json --lines
	fails 2 "tok-decode: ERROR: --null and --json exclude each other
$usage" decode --json --null
	fails 2 "tok-decode: ERROR: unexpected argument '72'
$usage" decode 72
	fails 1 "tok-decode: ERROR: cannot open 'nope': No such file or directory" \
	    tok-decode --model nope
	closed() { "$@" <&-; }
	fails 1 'tok-decode: ERROR: cannot read standard input: Bad file descriptor' \
	    closed decode
	fails 1 'tok-decode: ERROR: cannot read standard input: Is a directory' \
	    decode <.
	fails 1 "tok-decode: ERROR: $golden/gguf/vocab-types-short.gguf: key tokenizer.ggml.token_type has 19 entries for 20 tokens" \
	    tok-decode --model "$golden/gguf/vocab-types-short.gguf"
}

@test "tok-decode: a full disk is no success" {
	full() { "$@" >/dev/full; }
	printf '72\n' >in
	fails 1 'tok-decode: ERROR: cannot write standard output: No space left on device' \
	    full decode <in
	fails 1 'tok-decode: ERROR: cannot write standard output: No space left on device' \
	    full decode --json <in
}

@test "tok-decode: --help and --version" {
	works decode --help
	[ "${lines[0]}" = "${usage#tok-decode: }" ]
	works tok-decode --version
	[ "${output%% *}" = tok-decode ]
}

@test "tok-decode: a line that never ends fills no memory" {
	fails 1 'tok-decode: ERROR: cannot read standard input: Message too long' \
		tok-decode --model "$models/pocket-llada-q4_k_m.gguf" </dev/zero
}
