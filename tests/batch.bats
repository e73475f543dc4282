#!/usr/bin/env bats
# dllm-batch: order, resuming, repair, failures; the recipes that share it out.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # literal text; set for
# bats or by run

load helpers
BATS_TEST_TIMEOUT=120

usage='dllm-batch: usage: dllm-batch [options] --output FILE -- COMMAND [ARG...]'

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	llada=$models/pocket-llada-q4_k_m.gguf
	# Stands for dllm run --null --json; writes down what it is asked.
	cat >answer <<-'END'
	#!/usr/bin/perl
	$/ = "\0";
	$| = 1;
	while (<STDIN>) {
		chomp;
		open my $log, ">>", "asked";
		print $log "$_\n";
		exit 9 if $_ eq "die";
		print "{\"text\":\"", length, "\"}\n";
	}
	END
	chmod +x answer
	printf 'one\ntwo\nthree\n\nfive 5\n' >prompts
	{
		echo '{"prompt":"one","text":"3"}'
		echo '{"prompt":"two","text":"3"}'
		echo '{"prompt":"three","text":"5"}'
		echo '{"prompt":"","text":"0"}'
		echo '{"prompt":"five 5","text":"6"}'
	} >want
}

batch() {
	dllm-batch --input prompts --output out "$@" -- ./answer
}

@test "dllm-batch: answers in order, with their prompts" {
	works batch
	[ -z "$output" ]
	same want out
	same prompts asked
	works dllm-batch --output out2 -- ./answer <prompts
	same want out2
	printf 'no end' | dllm-batch --output out3 -- ./answer
	[ "$(cat out3)" = '{"prompt":"no end","text":"6"}' ]
}

@test "dllm-batch: JSON lines" {
	printf '%s\n' '{"id":7,"prompt":"a\nb\"\u00e4"}' \
	    '{"prompt":"two","more":[1,{"prompt":3}]}' >in.jsonl
	works dllm-batch --input in.jsonl --output out -- ./answer
	printf '{"prompt":"a\\nb\\"ä","text":"6"}\n{"prompt":"two","text":"3"}\n' |
		cmp - out
	works dllm-batch --input in.jsonl --output out -- ./answer
	[ "$(wc -l <out)" -eq 2 ]
	works dllm-batch --jsonl --output out2 -- ./answer <in.jsonl
	same out out2
	works dllm-batch --lines --input in.jsonl --output out3 -- ./answer
	head -n 1 out3 | grep -qF '{"prompt":"{\"id\":7,'
	echo '{"question":"x"}' >bad.jsonl
	fails 1 'dllm-batch: ERROR: bad.jsonl: line 1: no "prompt"' \
	    dllm-batch --input bad.jsonl --output new -- ./answer
	printf '{"prompt":"x"}\nx\n' >bad.jsonl
	run --separate-stderr dllm-batch --input bad.jsonl --output new -- ./answer
	[ "$status" -eq 1 ]
	[[ $stderr = 'dllm-batch: ERROR: bad.jsonl: line 2: '* ]]
	echo '{"prompt":"a\u0000b"}' >bad.jsonl
	fails 1 'dllm-batch: ERROR: bad.jsonl: prompt 1 holds a NUL byte' \
	    dllm-batch --input bad.jsonl --output new -- ./answer
	[ ! -e new ]
}

@test "dllm-batch: what is answered is not asked again" {
	for n in 0 1 3 5; do
		head -n "$n" want >out
		: >asked
		works batch
		same want out
		tail -n +$((n + 1)) prompts | cmp - asked
	done
	# All was answered: the command is not even started.
	works dllm-batch --input prompts --output out -- ./none
	# more prompts than before
	echo six >>prompts
	: >asked
	works batch
	[ "$(cat asked)" = six ]
	head -n 5 out | cmp - want
}

@test "dllm-batch: a half-written last line is repaired, wherever it was cut" {
	for n in 1 10 26 28 40 55 100; do
		head -c "$n" want >out
		whole=$(wc -l <out)
		: >asked
		works batch
		same want out
		tail -n +$((whole + 1)) prompts | cmp - asked
	done
}

@test "dllm-batch: killed at any moment, it goes on" {
	seq 300 >prompts
	cat >slow <<-'END'
	#!/usr/bin/perl
	$/ = "\0"; $| = 1;
	while (<STDIN>) { chomp; select undef, undef, undef, 0.004; print "{\"n\":$_}\n" }
	END
	chmod +x slow
	for delay in 0.05 0.12 0.2 0.26; do
		timeout -s KILL "$delay" dllm-batch --input prompts \
		    --output out -- ./slow || true
	done
	# 0.63 s in all are not enough for 300 answers of 4 ms
	[ ! -e out ] || [ "$(wc -l <out)" -lt 300 ]
	works dllm-batch --input prompts --output out -- ./slow
	seq 300 | sed 's/.*/{"prompt":"&","n":&}/' | cmp - out
}

@test "dllm-batch: bytes that are no UTF-8, and prompts larger than a pipe" {
	printf 'bad \377 byte\n' >prompts
	works batch
	grep -qx $'{"prompt":"bad \xef\xbf\xbd byte","text":"12"}' out
	works batch # it knows the prompt again
	[ "$(wc -l <out)" -eq 1 ]
	rm out
	for n in 1 2 3 4; do
		head -c 300000 /dev/zero | tr '\0' "$n"
		echo
	done >prompts
	works batch
	[ "$(grep -c '"text":"300000"}$' out)" -eq 4 ]
}

@test "dllm-batch: an output that belongs to other prompts is left alone" {
	{ head -n 1 want; echo '{"prompt":"other","text":""}'; } >out
	cp out before
	fails 1 'dllm-batch: ERROR: out: line 2 is not the answer to prompt 2' batch
	same out before
	{ cat want; echo '{"prompt":"six","text":""}'; } >out
	cp out before
	fails 1 'dllm-batch: ERROR: out: line 6: there are only 5 prompts' batch
	same out before
	echo 'my diary' >out
	run --separate-stderr batch
	[ "$status" -eq 1 ]
	[[ $stderr = 'dllm-batch: ERROR: out: line 1: '* ]]
	[ "$(cat out)" = 'my diary' ]
}

@test "dllm-batch: a file that holds no answers is left alone, whatever its end" {
	echo one >prompts
	for text in notes 'two lines
and no end'; do
		printf '%s' "$text" >out
		run -1 --separate-stderr dllm-batch --output out -- false <prompts
		[ "$(cat out)" = "$text" ]
	done
	printf notes >out
	fails 1 'dllm-batch: ERROR: out: the last line is not the beginning of an answer' \
		dllm-batch --output out -- false <prompts
	[ "$(cat out)" = notes ]
}

@test "dllm-batch: two runs do not write one file" {
	cat >waiting <<-'END'
	#!/bin/sh
	: >started
	while [ ! -e go ]; do sleep 0.05; done
	exec ./answer
	END
	chmod +x waiting
	dllm-batch --input prompts --output out -- ./waiting 3>&- &
	pid=$!
	wait_until 5 test -e started
	fails 1 'dllm-batch: ERROR: out: another run is writing it' batch
	: >go
	wait "$pid"
	same want out
}

@test "dllm-batch: a command that fails; what was answered stays" {
	printf 'one\ndie\nthree\n' >prompts
	fails 9 'dllm-batch: ERROR: ./answer exited with status 9 before it answered prompt 2' \
	    batch
	head -n 1 want | cmp - out
	printf 'one\ntwo\n' >prompts
	works batch
	head -n 2 want | cmp - out
	rm out
	fails 1 'dllm-batch: ERROR: sh was killed by signal 9 before it answered prompt 1' \
	    dllm-batch --input prompts --output out -- sh -c 'kill -KILL $$'
	fails 1 'dllm-batch: ERROR: true exited with status 0 before it answered prompt 1' \
	    dllm-batch --input prompts --output out -- true
	fails 1 'dllm-batch: ERROR: sh: the answer to prompt 1: not a JSON object' \
	    dllm-batch --input prompts --output out -- sh -c "read -r a; echo '[1]'"
	fails 1 "dllm-batch: ERROR: cannot run './none': No such file or directory" \
	    dllm-batch --input prompts --output out -- ./none
	fails 1 'dllm-batch: ERROR: sh printed more than it was asked for' \
	    dllm-batch --input prompts --output out -- \
	    sh -c './answer; echo more'
	head -n 2 want | cmp - out
}

@test "dllm-batch: wrong command lines, files that cannot be had" {
	fails 2 "dllm-batch: ERROR: --output is required
$usage" dllm-batch -- true
	fails 2 "dllm-batch: ERROR: the command to run is missing (-- dllm run --null --json)
$usage" dllm-batch --output out
	fails 1 "dllm-batch: ERROR: cannot open 'no': No such file or directory" \
	    dllm-batch --input no --output out -- ./answer
	[ ! -e out ]
	fails 1 "dllm-batch: ERROR: cannot open 'no/out': No such file or directory" \
	    dllm-batch --input prompts --output no/out -- ./answer
	fails 1 "dllm-batch: ERROR: cannot write '/dev/full': No space left on device" \
	    dllm-batch --input prompts --output /dev/full -- ./answer
	run --separate-stderr batch --verbose
	[ "$status" -eq 0 ]
	[ "${#stderr_lines[@]}" -eq 6 ]
	[ "${stderr_lines[5]}" = 'answered: 5 of 5' ]
}

@test "dllm batch: the real tools" {
	printf 'What is 2 + 3?\nWhat is 37 + 48?\n' >prompts
	works dllm batch -n 16 --output out prompts
	[ "$(sed 's/,"tokens".*//' out)" = '{"prompt":"What is 2 + 3?","text":"2 + 3 = 5."
{"prompt":"What is 37 + 48?","text":"37 + 48 = 85."' ]
	head -c 600 out >part
	cp part out
	works dllm batch -n 16 --output out --input prompts
	[ "$(wc -l <out)" -eq 2 ]
	run --separate-stderr dllm batch -n 16 --output new --steps x prompts
	[ "$status" -eq 2 ]
	[[ ${stderr_lines[0]} = "dllm-sample: ERROR: --steps 'x':"* ]]
}

# parts: two and three processes, the same file as one
@test "batch-parallel.sh: the same answers in the same order, resumable" {
	printf 'What is %s + 3?\n' 1 2 3 4 5 >prompts
	dllm batch -n 12 --output one prompts
	answers() { sed 's/,"prompt_tokens".*//' "$1"; }
	answers one >want
	"$top/pipelines/batch-parallel.sh" "$llada" prompts many 3 -n 12 \
	    --threads 1
	answers many | cmp - want
	[ ! -e many.parts ]
	# an interrupted run: one part done, one half done
	mkdir many.parts
	split -e -n l/3 --additional-suffix=.txt prompts many.parts/
	n=$(wc -l <many.parts/aa.txt)
	head -n "$n" one >many.parts/aa.answers
	sed "1,${n}d" one | head -c 700 >many.parts/ab.answers
	rm many
	"$top/pipelines/batch-parallel.sh" "$llada" prompts many 3 -n 12 \
	    --threads 1
	answers many | cmp - want
	head -n "$n" one | cmp - <(head -n "$n" many)
	# a failure is one, and leaves what was answered
	run ! "$top/pipelines/batch-parallel.sh" none.gguf prompts other 2
	[ ! -e other ]
}

@test "batch-slurm.sh: every task its share" {
	printf '{"prompt":"What is %s + 3?"}\n' 1 2 3 >prompts.jsonl
	dllm batch -n 12 --output one prompts.jsonl
	for id in 0 1; do
		SLURM_ARRAY_TASK_ID=$id SLURM_ARRAY_TASK_COUNT=2 \
		SLURM_CPUS_PER_TASK=1 "$top/pipelines/batch-slurm.sh" \
		    "$llada" prompts.jsonl answers -n 12
	done
	[ "$(ls answers)" = '00000.answers
00000.jsonl
00001.answers
00001.jsonl' ]
	cat answers/*.answers | sed 's/,"prompt_tokens".*//' |
		cmp - <(sed 's/,"prompt_tokens".*//' one)
}
