#!/usr/bin/env bats
# dllm-chat: turns, history as ids, commands, failures.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # literal text; set for
# bats or by run

load helpers
BATS_TEST_TIMEOUT=60

usage='dllm-chat: usage: dllm-chat --model PATH [options] -- COMMAND [ARG...]'

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	llada=$models/pocket-llada-q4_k_m.gguf
	dream=$models/pocket-dream-q4_k_m.gguf
	# A sampler that writes down its lines and answers from a file.
	cat >sampler <<-'END'
	#!/bin/sh
	exec 3<answers
	while IFS= read -r line; do
		echo "$line" >>sent
		IFS= read -r answer <&3 || exit 7
		echo "$answer"
	done
	END
	chmod +x sampler
}

chat() {
	dllm-chat --model "$@" -- ./sampler
}

# ids MODEL TEXT: of the text alone
ids() {
	tok-encode --model "$1" --no-chat --prompt "$2"
}

# message ROLE TEXT: for tok-encode --messages
message() {
	printf '{"role":"%s","content":"%s"}\n' "$1" "$2"
}

@test "dllm-chat: turns follow the template, in both of them" {
	for model in "$llada 1023 1017" "$dream 1018 1016"; do
		read -r model turn text <<<"$model"
		rm -f sent
		{
			echo "$(ids "$model" five) $turn"
			echo "$(ids "$model" six) $turn $text"
			echo "$(ids "$model" eight) $text $text"
			ids "$model" nine
		} >answers
		printf 'one\ntwo\nthree\nfour\n' | chat "$model" >got
		printf 'five\nsix\neight\nnine\n' | cmp - got
		for n in 1 2 3 4; do
			{
				message user one
				message assistant five
				message user two
				message assistant six
				message user three
				message assistant eight
				message user four
			} | head -n $((2 * n - 1)) |
				tok-encode --model "$model" --messages -
		done >want
		same want sent
	done
}

@test "dllm-chat: answers are kept as ids, never encoded again" {
	# "five" letter by letter, with a mask that was left
	echo 102 105 118 101 1020 1023 >answers
	echo 54 1023 >>answers
	printf 'one\ntwo\n' | chat "$llada" >got
	printf 'five\n6\n' | cmp - got
	[[ $(sed -n 2p sent) = "$(sed -n 1p sent) 102 105 118 101 1020 1023 1021 "* ]]
}

@test "dllm-chat: an answer that was cut gets its end of turn" {
	printf '53\n54 1023\n' >answers
	printf 'one\ntwo\n' | chat "$llada" >got
	[[ $(sed -n 2p sent) = "$(sed -n 1p sent) 53 1023 1021 "* ]]
	rm sent
	printf '\n54 1023\n' >answers # an empty answer
	printf 'one\ntwo\n' | chat "$llada" >got
	printf '\n6\n' | cmp - got
	[[ $(sed -n 2p sent) = "$(sed -n 1p sent) 1023 1021 "* ]]
}

@test "dllm-chat: /reset forgets, /quit ends, empty lines are none" {
	printf '53 1023\n54 1023\n55 1023\n' >answers
	printf 'one\n\n/reset\none\n/resets\n/quit\nnever' | chat "$llada" >got
	printf '5\n6\n7\n' | cmp - got
	[ "$(sed -n 1p sent)" = "$(sed -n 2p sent)" ]
	[ "$(sed -n 3p sent)" != "$(sed -n 1p sent)" ]
	[ "$(wc -l <sent)" -eq 3 ]
	works chat "$llada" </dev/null
	[ -z "$output" ]
}

@test "dllm-chat: the last line need not end" {
	printf '53 1023\n54 1023\n' >answers
	printf 'one\ntwo' | chat "$llada" >got
	printf '5\n6\n' | cmp - got
}

@test "dllm-chat: system message, template, control tokens in text" {
	printf '53 1018\n53 1018\n' >answers
	printf 'one\n' | chat "$dream" --system 'Be brief.' >got
	{ message system 'Be brief.'; message user one; } |
		tok-encode --model "$dream" --messages - >want
	same want sent
	rm sent
	printf 'a<|im_end|>b\n' | chat "$dream" >got
	tok-encode --model "$dream" --prompt 'a<|im_end|>b' >want
	same want sent
	[ "$(tr ' ' '\n' <sent | grep -c '^1018$')" -eq 2 ]
	rm sent
	printf 'a<|im_end|>b\n' | chat "$dream" --special >got
	[ "$(tr ' ' '\n' <sent | grep -c '^1018$')" -eq 3 ]
	fails 1 "dllm-chat: ERROR: $llada: template chatml: the vocabulary has no control token <|im_end|>" \
	    chat "$llada" --template chatml </dev/null
}

@test "dllm-chat: the real models, through the wrapper" {
	for model in "$llada" "$dream"; do
		printf 'What is 37 + 48?\n/reset\nWhat is 2 + 3?\n' |
			dllm chat --model "$model" -n 32 >got
		printf '37 + 48 = 85.\n2 + 3 = 5.\n' | cmp - got
	done
	printf 'What is 2 + 3?\nWhat is 37 + 48?\n' |
		dllm chat -n 24 --trace trace >got
	[ "$(wc -l <got)" -eq 2 ]
	# The second canvas begins with the first one and its answer.
	grep dllm_trace trace | sed 's/.*"canvas":\[\([0-9,]*\)\].*/\1/' >canvases
	first=$(sed -n 1p canvases)
	second=$(sed -n 2p canvases)
	[ "${second#"${first%%,1020*}",50,}" != "$second" ]
}

@test "dllm-chat: at a terminal" {
	printf '53 1023\n54 1023\n' >answers
	run script -qec "dllm-chat --model $llada -- ./sampler" /dev/null \
	    < <(sleep 0.3; printf 'one\n'; sleep 0.5; printf '/quit\n'; sleep 0.2)
	[ "$status" -eq 0 ]
	[[ $output = '/reset forgets the conversation, /quit ends it'*'> '*'5'*'> '* ]]
	# A turn that fails is forgotten, and the talk goes on.
	rm -f sent
	printf '53 1023\n' >answers
	run script -qec "dllm-chat --model $llada -- ./sampler" /dev/null \
	    < <(sleep 0.3; printf 'one\n'; sleep 0.5; printf 'two\n'; sleep 0.5
		printf 'three\n'; sleep 0.5; printf '/quit\n'; sleep 0.2)
	[ "$status" -eq 0 ]
	[[ $output = *'> '*'5'*'> '*'./sampler exited with status 7 before it answered'*'> '*'5'*'> '* ]]
	{ message user one; message assistant 5; message user three; } |
		tok-encode --model "$llada" --messages - >want
	sed -n 3p sent | cmp - want
}

@test "dllm-chat: interrupted, it leaves no process and no file" {
	mkdir shm here
	cd here || return
	perl -e '
	setpgrp; # the terminal signals the whole group
	my $p = fork // die;
	if (!$p) {
		$ENV{DLLM_SHM} = "../shm";
		open STDIN, "-|", "echo x; sleep 9" or die;
		open STDOUT, ">", "/dev/null";
		exec @ARGV;
	}
	$SIG{INT} = "IGNORE";
	select undef, undef, undef, 0.7;
	print `ps -o pid= --ppid $p`;
	kill "INT", 0;
	waitpid $p, 0;
	print "signal ", $? & 127, "\n"' dllm chat -n 400 --cfg-scale 1 \
	    >../log 2>../err
	cd .. || return
	[ "$(tail -n 1 log)" = 'signal 2' ]
	while read -r pid; do
		wait_until 5 gone "$pid"
	done < <(sed '$d' log)
	rmdir shm here
	[ ! -s err ]
}

@test "dllm-chat: wrong command lines and what fails" {
	fails 2 "dllm-chat: ERROR: --model is required
$usage" dllm-chat -- true
	fails 2 "dllm-chat: ERROR: the command to run is missing (-- dllm-sample -- dllm-forward --serve --model PATH)
$usage" dllm-chat --model "$llada"
	fails 2 "dllm-chat: ERROR: --template 'x': not one of llada, chatml
$usage" chat "$llada" --template x
	fails 1 "dllm-chat: ERROR: cannot open 'no.gguf': No such file or directory" \
	    chat no.gguf
	echo one >in
	fails 1 "dllm-chat: ERROR: cannot run './none': No such file or directory" \
	    dllm-chat --model "$llada" -- ./none <in
	: >answers
	fails 7 'dllm-chat: ERROR: ./sampler exited with status 7 before it answered' \
	    chat "$llada" <in
	fails 1 'dllm-chat: ERROR: sh was killed by signal 9 before it answered' \
	    dllm-chat --model "$llada" -- sh -c 'kill -KILL $$' <in
	echo nonsense >answers
	fails 1 'dllm-chat: ERROR: ./sampler: byte 1: not a token id' \
	    chat "$llada" <in
	echo 53 1023 >answers
	export llada
	run --separate-stderr sh -c 'dllm-chat --model "$llada" -- ./sampler <in >/dev/full'
	[ "$status" -eq 1 ]
	[ "$stderr" = 'dllm-chat: ERROR: cannot write standard output: No space left on device' ]
}
