#!/usr/bin/env bats
# dllm, the script: what it hands to the tools and how it fails, with stand-ins
# that write down their arguments.  tests/dllm.bats runs the real pipeline.
# shellcheck disable=SC1003,SC2016,SC2034,SC2154 # literal text; set for bats or by run

load helpers
BATS_TEST_TIMEOUT=300

# stand_in NAME BODY: a tool beside the wrapper that logs its arguments
stand_in() {
	{
		printf '#!/bin/sh\nfor a in "$@"; do printf "<%%s>" "$a"; done >%s\n' \
		    "$dir/$1.args"
		printf '%s\n' "$2"
	} >"$dir/$1"
	chmod +x "$dir/$1"
}

setup() {
	dir=$BATS_TEST_TMPDIR
	cd "$dir" || return
	cp "$top/tools/dllm" "$BUILD/bin/dllm-suggest" .
	stand_in tok-encode 'printf "1 2\n\n"'
	stand_in dllm-sample 'cat >sample.in; echo 7 8'
	stand_in dllm-forward 'cat; echo done'
	stand_in tok-decode 'cat >decode.in; [ -s decode.in ] || {
		echo "tok-decode: ERROR: standard input ended before a token line" >&2
		exit 1; }; printf "the text"'
	dllm=$dir/dllm
	run_usage='dllm: usage: dllm run [--model PATH] [--prompt TEXT] [OPTION...] [PROMPT]'
}

# args TOOL TEXT: the arguments of the stand-in were these
args() {
	printf '%s: %s\n' "$1" "$(cat "$1.args")" >&2
	[ "$(cat "$1.args"; echo .)" = "$2." ]
}

# pipeline RUN-ARGUMENT...: works and prints the text
pipeline() {
	works "$dllm" run --model M "$@"
	[ "$output" = 'the text' ]
}

@test "dllm run: composes the four tools" {
	pipeline --prompt hello
	args tok-encode '<--model=M><--prompt=hello>'
	args dllm-sample "<--><$dir/dllm-forward><--serve><--model=M>"
	args tok-decode '<--model=M><--stop>'
	printf '1 2\n\n' | cmp - sample.in
	echo 7 8 | cmp - decode.in
	"$dllm" run --model M x | od -c | grep -q 't   e   x   t  \\n'
}

@test "dllm run: every option goes to the tool it belongs to" {
	pipeline --prompt=a --system s --template t --no-chat --bos --special \
	    --max-tokens 1 --steps 2 --block-length 3 --seed 4 --temperature 5 \
	    --top-p 6 --top-k 7 --cfg-scale 8 --remasking 9 --algorithm 10 \
	    --alg-temp 11 --eps 12 --no-eos --demote-eos --allow-mask --greedy \
	    --prompt-masks 13 --no-early-stop --share 14 --trace 15 \
	    --all-rows --dump-step-stats --stream --verbose --threads 16 --max-length 17 \
	    --activations f32 --no-memory-check
	args tok-encode '<--model=M><--prompt=a><--system=s><--template=t><--no-chat><--bos><--special>'
	args dllm-sample "<--max-tokens=1><--steps=2><--block-length=3><--seed=4><--temperature=5><--top-p=6><--top-k=7><--cfg-scale=8><--remasking=9><--algorithm=10><--alg-temp=11><--eps=12><--no-eos><--demote-eos><--allow-mask><--greedy><--prompt-masks=13><--no-early-stop><--share=14><--trace=15><--all-rows><--dump-step-stats><--stream><--verbose><--><$dir/dllm-forward><--serve><--model=M><--threads=16><--max-length=17><--activations=f32><--no-memory-check>"
}

@test "dllm run: short options, the prompt as a word, the model in two forms" {
	works "$dllm" run -m M -p hi -n 5 -t 2
	args tok-encode '<--model=M><--prompt=hi>'
	args dllm-sample "<--max-tokens=5><--><$dir/dllm-forward><--serve><--model=M><--threads=2>"
	pipeline hi -n 5
	args tok-encode '<--model=M><--prompt=hi>'
	pipeline -- --hi
	args tok-encode '<--model=M><--prompt=--hi>'
	echo hi | pipeline
	args tok-encode '<--model=M>'
	echo hi | pipeline -
	args tok-encode '<--model=M>'
	echo hi | pipeline - -n 2
	args tok-encode '<--model=M>'
}

@test "dllm run: lines, null, json and canvas shape the output" {
	works "$dllm" run --model M --lines
	[ "$output" = 'the text' ]
	args tok-encode '<--model=M><--lines>'
	args tok-decode '<--model=M><--lines><--stop>'
	"$dllm" run --model M --lines >out
	printf 'the text' | cmp - out
	works "$dllm" run --model M --null
	args tok-decode '<--model=M><--null><--stop>'
	works "$dllm" run --model M --json x
	args dllm-sample "<--json><--><$dir/dllm-forward><--serve><--model=M>"
	args tok-decode '<--model=M><--json><--stop>'
	works "$dllm" run --model M --null --json
	args tok-encode '<--model=M><--null>'
	args tok-decode '<--model=M><--json><--stop>'
	"$dllm" run --model M --json x >out
	printf 'the text' | cmp - out
	works "$dllm" run --model M --canvas x
	args tok-decode '<--model=M>'
	for zero in 0 00; do
		works "$dllm" run --model M -n $zero x
		args tok-decode '<--model=M>'
	done
}

@test "dllm run: with --watch the answer waits for the last frame" {
	stand_in dllm-watch 'cat; sleep 0.3; echo "the last frame"'
	stand_in dllm-sample 'echo 7 8'
	stand_in tok-decode 'cat'
	"$dllm" run --model M --watch x >all 2>&1
	printf 'the last frame\n7 8\n\n' | cmp - all
	args dllm-watch '<--model=M>'
}

@test "dllm run: any prompt arrives as it is" {
	for text in '' ' ' "it's" '"q"' '$HOME $(id) `id`' '*' '?' '\' 'a\nb' \
	    '--x' '-p' '-' "'" "'''" '%s' 'ä€😀' $'two\nlines\n\n' $'\n' $'\377'; do
		pipeline --prompt "$text"
		args tok-encode "<--model=M><--prompt=$text>"
		pipeline --prompt="$text"
		args tok-encode "<--model=M><--prompt=$text>"
		pipeline -- "$text"
		args tok-encode "<--model=M><--prompt=$text>"
	done
	works "$dllm" run -m "it's M" x
	args tok-encode "<--model=it's M><--prompt=x>"
	args dllm-sample "<--><$dir/dllm-forward><--serve><--model=it's M>"
}

@test "dllm run: wrong command lines" {
	fails 2 "dllm: ERROR: unknown option '--stesp' (did you mean --steps?)
$run_usage" "$dllm" run --stesp 3 x
	fails 2 "dllm: ERROR: unknown option '--qqqqqqq'
$run_usage" "$dllm" run --qqqqqqq=3 x
	fails 2 "dllm: ERROR: unknown option '-z'
$run_usage" "$dllm" run -z
	fails 2 "dllm: ERROR: --steps: a value is missing
$run_usage" "$dllm" run x --steps
	fails 2 "dllm: ERROR: --greedy takes no value
$run_usage" "$dllm" run --greedy=1
	fails 2 "dllm: ERROR: --device 'tpu': not one of auto, cpu, gpu, cuda
$run_usage" "$dllm" run --device tpu x
	fails 2 "dllm: ERROR: --threads '0': not in 1..1024
$run_usage" "$dllm" run --threads 0 x
	fails 2 "dllm: ERROR: --threads '1025': not in 1..1024
$run_usage" "$dllm" run -t 1025 x
	fails 2 "dllm: ERROR: --max-length '99999999999999999999': not in 1..1048576
$run_usage" "$dllm" run --max-length 99999999999999999999 x
	fails 2 "dllm: ERROR: --max-length '-1': not in 1..1048576
$run_usage" "$dllm" run --max-length=-1 x
	fails 2 "dllm: ERROR: --activations 'q8, f32': not one of q8, f32
$run_usage" "$dllm" run --activations 'q8, f32' x
	fails 2 "dllm: ERROR: unexpected argument 'b'
$run_usage" "$dllm" run a b
	fails 2 "dllm: ERROR: unexpected argument '-'
$run_usage" "$dllm" run --prompt a -
	fails 2 "dllm: ERROR: unexpected argument 'a'
$run_usage" "$dllm" run --prompt p a
	fails 2 "dllm: ERROR: --watch and --trace exclude each other
$run_usage" "$dllm" run --watch --trace t p
	[ ! -e tok-encode.args ]
}

@test "dllm: a terminal where input or an array belongs is a usage error" {
	for command in run tokenize; do
		run script -qec "'$dllm' $command --model M" /dev/null
		[ "$status" -eq 2 ]
		[[ $output = 'dllm: ERROR: a prompt is missing'* ]]
	done
	run script -qec "'$dllm' logits --model M --tokens 1" /dev/null
	[ "$status" -eq 2 ]
	[[ $output = 'dllm: ERROR: standard output is a terminal: give --output FILE'* ]]
}

@test "dllm run: devices" {
	fails 1 'dllm: ERROR: no GPU found: dllm-forward-cuda is not installed (run with --device cpu)' \
	    "$dllm" run --model M --device gpu x
	fails 1 'dllm: ERROR: no GPU found: dllm-forward-cuda is not installed (run with --device cpu)' \
	    "$dllm" run --model M --device cuda x
	[ ! -e tok-encode.args ]
	pipeline --device cpu x
	pipeline --device auto x
	args dllm-sample "<--><$dir/dllm-forward><--serve><--model=M>"
	stand_in dllm-forward-cuda true
	pipeline --device gpu x
	args dllm-sample "<--><$dir/dllm-forward-cuda><--serve><--model=M>"
	pipeline --device cpu x
	args dllm-sample "<--><$dir/dllm-forward><--serve><--model=M>"
}

@test "dllm run: the first stage that failed gives status and message" {
	stand_in tok-encode 'echo "tok-encode: ERROR: no" >&2; exit 3'
	fails 3 'tok-encode: ERROR: no' "$dllm" run --model M x
	[ ! -e dllm-sample.args ]
	stand_in tok-encode 'echo 1'
	stand_in dllm-sample 'echo "dllm-sample: ERROR: no" >&2; exit 4'
	fails 4 'dllm-sample: ERROR: no' "$dllm" run --model M x
	stand_in dllm-sample 'echo 1'
	stand_in tok-decode 'cat >/dev/null; echo "tok-decode: ERROR: no" >&2; exit 5'
	run --separate-stderr "$dllm" run --model M x
	[ "$status" -eq 5 ]
	[ "$stderr" = 'tok-decode: ERROR: no' ]
	stand_in tok-decode 'cat >/dev/null; echo "tok-decode: warning: hm" >&2'
	run --separate-stderr "$dllm" run --model M x
	[ "$status" -eq 0 ]
	[ "$stderr" = 'tok-decode: warning: hm' ]
}

@test "dllm run: a decoder that fails early is to blame for the broken pipe" {
	stand_in dllm-sample 'while echo 1; do :; done'
	stand_in tok-decode 'echo "tok-decode: ERROR: no" >&2; exit 5'
	fails 5 'tok-decode: ERROR: no' "$dllm" run --model M x
}

@test "dllm run: a stage killed by a signal is named" {
	stand_in dllm-sample 'kill -SEGV $$'
	run --separate-stderr "$dllm" run --model M x
	[ "$status" -eq 139 ]
	[[ $stderr = *'dllm: ERROR: dllm-sample was killed by signal 11' ]]
	[ -z "$output" ]
}

@test "dllm run: a full standard output is an error" {
	stand_in tok-decode 'cat >/dev/null'
	run --separate-stderr sh -c '"$1" run --model M x >/dev/full' - "$dllm"
	[ "$status" -eq 1 ]
	[ -n "$stderr" ]
}

@test "dllm run: no prompt is nothing to answer" {
	stand_in tok-encode :
	fails 1 'dllm: ERROR: there is no prompt' \
	    "$dllm" run --model M --lines <<<''
	[ ! -e dllm-sample.args ]
}

@test "dllm run: closed descriptors are never taken for the pipes" {
	stand_in tok-decode 'cat >/dev/null; printf text'
	run sh -c 'echo x | "$1" run --model M 2>&-' - "$dllm"
	[ "$status" -eq 0 ]
	[ "$output" = text ]
	run sh -c '"$1" run --model M x <&-' - "$dllm"
	[ "$status" -eq 0 ]
	[ "$output" = text ]
	stand_in tok-decode 'cat >/dev/null; printf text 2>/dev/null || {
		echo "tok-decode: ERROR: no output" >&2; exit 1; }'
	fails 1 'tok-decode: ERROR: no output' \
	    sh -c 'echo x | "$1" run --model M >&-' - "$dllm"
	stand_in tok-encode 'cat'
	run sh -c 'echo 1 2 | "$1" run --model M' - "$dllm"
	[ "$(cat sample.in)" = '1 2' ]
	stand_in tok-encode 'cat || exit 1; echo 1 2'
	stand_in tok-decode 'grep .'
	run --separate-stderr sh -c '"$1" run --model M <&-' - "$dllm"
	[ "$status" -eq 1 ]
	[ -z "$output" ]
}

@test "dllm run: an empty path is no reason to take the demo model" {
	pipeline --model '' x
	args tok-encode "<--model=><--prompt=x>"
	works "$dllm" logits --model '' --tokens 1
	args dllm-forward "<--model=>"
}

@test "dllm run: a PATH with cat alone is enough" {
	mkdir bin
	ln -s "$(command -v cat)" bin/cat
	stand_in tok-decode 'cat >/dev/null; printf text'
	stand_in dllm-sample 'cat >/dev/null; echo 7 8'
	works env -i PATH="$dir/bin" "$(command -v sh)" "$dllm" run --model M x
	[ "$output" = text ]
}

@test "dllm run: HUP, INT, QUIT and TERM end every stage at once" {
	for signal in HUP INT QUIT TERM HUP INT QUIT TERM; do
		if [ -z "${late-}" ]; then
			stand_in tok-encode 'echo $$ >pid; exec sleep 50'
		else
			stand_in tok-encode 'echo 1'
			stand_in dllm-sample 'echo $$ >pid; exec sleep 50'
		fi
		[ $signal != TERM ] || late=1
		rm -f pid
		# Started by perl: a shell would have it ignore SIGINT.
		perl -e '$p = fork // die;
			if (!$p) { open STDIN, "<", "/dev/null"; exec @ARGV[1 .. $#ARGV] }
			select undef, undef, undef, 0.05 until -s "pid";
			kill $ARGV[0], $p; waitpid $p, 0; print $? & 127, "\n"' \
		    "$signal" "$dllm" run --model M x >out 2>err
		[ "$(cat out)" -eq "$(kill -l "$signal")" ]
		gone "$(cat pid)"
		[ ! -s err ] || { cat err >&2; false; }
	done
}

@test "dllm run: a signal to the whole group leaves half a line nowhere" {
	stand_in dllm-sample 'echo $$ >pid; exec sleep 50'
	for signal in HUP INT TERM; do
		rm -f pid
		perl -e '$p = fork // die;
			if (!$p) { setpgrp; exec @ARGV[1 .. $#ARGV] }
			select undef, undef, undef, 0.05 until -s "pid";
			kill "-$ARGV[0]", $p; waitpid $p, 0; exit 0' \
		    "$signal" "$dllm" run --model M x >out 3>&-
		wait_until 20 gone "$(cat pid)"
		[ ! -s out ]
	done
}

@test "dllm run: a shell of its own that is killed is an error" {
	stand_in dllm-sample 'cat >/dev/null; kill -KILL $PPID; sleep 0.2; echo 7'
	run --separate-stderr "$dllm" run --model M x
	[ "$status" -eq 1 ]
	[[ $stderr = *'dllm: ERROR: a part of this script was killed' ]]
}

@test "dllm run: --help wins, --version" {
	works "$dllm" run --nonsense --help
	[[ ${lines[0]} = 'usage: dllm run'* ]]
	works "$dllm" run -h
	works "$dllm" run x --version
	[ "$output" = "$("$dllm" --version)" ]
	[[ $output = 'dllm (dllm) '[0-9]* ]]
}

@test "dllm: commands" {
	works "$dllm"
	for word in run batch chat infill score inspect quantize tokenize \
	    logits help version; do
		grep -q "^  $word  " <<<"$output"
	done
	all=$output
	works "$dllm" help
	[ "$output" = "$all" ]
	works "$dllm" --help
	[ "$output" = "$all" ]
	works "$dllm" help run
	[ "$output" = "$("$dllm" run --help)" ]
	works "$dllm" help suggest
	[[ $output = 'usage: dllm-suggest '* ]]
	fails 2 "dllm: ERROR: unknown command 'rum' (did you mean run?)
dllm: usage: dllm COMMAND [ARGUMENT...] (dllm help lists the commands)" "$dllm" rum
	fails 2 "dllm: ERROR: unknown command 'zzzzzzzzz'
dllm: usage: dllm COMMAND [ARGUMENT...] (dllm help lists the commands)" "$dllm" zzzzzzzzz
	fails 2 "dllm: ERROR: unknown command '../x'
dllm: usage: dllm COMMAND [ARGUMENT...] (dllm help lists the commands)" "$dllm" ../x
	fails 2 "dllm: ERROR: unknown option '--x'
dllm: usage: dllm COMMAND [ARGUMENT...] (dllm help lists the commands)" "$dllm" --x
}

@test "dllm NAME runs dllm-NAME, beside the script or from PATH" {
	stand_in dllm-other 'echo other; exit 9'
	run "$dllm" other a 'b c'
	[ "$status" -eq 9 ]
	[ "$output" = other ]
	args dllm-other '<a><b c>'
	mkdir bin
	mv dllm-other bin/dllm-remote
	PATH=$dir/bin:$PATH run "$dllm" remote
	[ "$status" -eq 9 ]
}

@test "dllm batch: the tool with dllm run as its child" {
	stand_in dllm-batch 'exit 5'
	run "$dllm" batch -m M "it's" --output o -n 2 --system s --no-chat \
	    --steps 3 --greedy -t 4 --jsonl --verbose
	[ "$status" -eq 5 ]
	args dllm-batch "<--input=it's><--output=o><--jsonl><--><$dllm><run><--null><--json><--model=M><--device=auto><--system=s><--no-chat><--max-tokens=2><--steps=3><--greedy><--verbose><--threads=4>"
	run "$dllm" batch -m M --input i --output o --lines --device cpu
	args dllm-batch "<--input=i><--output=o><--lines><--><$dllm><run><--null><--json><--model=M><--device=cpu>"
	run "$dllm" batch -m M --output o </dev/null
	args dllm-batch "<--input=-><--output=o><--><$dllm><run><--null><--json><--model=M><--device=auto>"
	batch_usage='dllm: usage: dllm batch [--model PATH] [--output FILE] [OPTION...] [FILE]'
	fails 2 "dllm: ERROR: unexpected argument 'b'
$batch_usage" "$dllm" batch --input a b
	fails 2 "dllm: ERROR: unknown option '--trace'
$batch_usage" "$dllm" batch --trace a
}

@test "dllm chat: the tool with the sampler as its child" {
	stand_in dllm-chat 'echo text; exit 5'
	run "$dllm" chat -m M --system "it's" --template t --special --nfc -n 2 \
	    --steps 3 --temperature 4 --verbose -t 5
	[ "$status" -eq 5 ]
	[ "$output" = text ]
	args dllm-chat "<--model=M><--system=it's><--template=t><--special><--nfc><--><$dir/dllm-sample><--max-tokens=2><--steps=3><--temperature=4><--verbose><--><$dir/dllm-forward><--serve><--model=M><--threads=5>"
	chat_usage='dllm: usage: dllm chat [--model PATH] [OPTION...]'
	fails 2 "dllm: ERROR: unexpected argument 'x'
$chat_usage" "$dllm" chat x
	fails 2 "dllm: ERROR: unknown option '--canvas'
$chat_usage" "$dllm" chat --canvas
}

@test "dllm infill: the tool with the sampler as its child" {
	stand_in dllm-infill 'echo text; exit 5'
	run "$dllm" infill -m M "it's [MASK]" --fill-only --special --nfc --no-bos \
	    --steps 2 --seed 3 --greedy -t 4
	[ "$status" -eq 5 ]
	[ "$output" = text ]
	args dllm-infill "<--model=M><--fill-only><--special><--nfc><--no-bos><--text=it's [MASK]><--><$dir/dllm-sample><--steps=2><--seed=3><--greedy><--max-tokens=0><--><$dir/dllm-forward><--serve><--model=M><--threads=4>"
	run "$dllm" infill -m M --prefix a --suffix b --hole 3
	args dllm-infill "<--model=M><--prefix=a><--suffix=b><--hole=3><--><$dir/dllm-sample><--max-tokens=0><--><$dir/dllm-forward><--serve><--model=M>"
	run "$dllm" infill -m M </dev/null
	args dllm-infill "<--model=M><--><$dir/dllm-sample><--max-tokens=0><--><$dir/dllm-forward><--serve><--model=M>"
	infill_usage='dllm: usage: dllm infill [--model PATH] [--text TEXT] [OPTION...] [TEXT]'
	fails 2 "dllm: ERROR: unexpected argument 'b'
$infill_usage" "$dllm" infill --text a b
	fails 2 "dllm: ERROR: unknown option '--max-tokens'
$infill_usage" "$dllm" infill --max-tokens 3 a
}

@test "dllm score: pairs to token lines, token lines to figures" {
	stand_in dllm-score 'cat; echo done'
	works "$dllm" score -m M pairs --samples 2 --strata=1 --seed 3 \
	    --cfg-scale 4 --mask 5 --greedy --json --verbose --system s \
	    --no-chat --special -t 6 --activations f32
	[ "$output" = $'1 2\n\ndone' ]
	args tok-encode '<--model=M><--pairs=pairs><--system=s><--no-chat><--special>'
	args dllm-score "<--samples=2><--strata=1><--seed=3><--cfg-scale=4><--mask=5><--greedy><--verbose><--json><--><$dir/dllm-forward><--serve><--model=M><--threads=6><--activations=f32>"
	works "$dllm" score -m M </dev/null
	args tok-encode '<--model=M><--pairs=->'
	works "$dllm" score -m M --pairs "it's"
	args tok-encode "<--model=M><--pairs=it's>"
	score_usage='dllm: usage: dllm score [--model PATH] [--pairs FILE] [OPTION...] [FILE]'
	fails 2 "dllm: ERROR: unexpected argument 'b'
$score_usage" "$dllm" score a b
	fails 2 "dllm: ERROR: unexpected argument 'b'
$score_usage" "$dllm" score --pairs a b
	fails 2 "dllm: ERROR: unknown option '--sample' (did you mean --samples?)
$score_usage" "$dllm" score --sample 3
	stand_in tok-encode 'echo "tok-encode: ERROR: no" >&2; exit 3'
	rm dllm-score.args
	fails 3 'tok-encode: ERROR: no' "$dllm" score -m M a
	[ ! -e dllm-score.args ]
	stand_in tok-encode 'echo 1'
	stand_in dllm-score 'exit 4'
	fails 4 '' "$dllm" score -m M a
}

@test "dllm inspect, tokenize and logits pass their arguments on" {
	stand_in gguf-inspect 'echo facts'
	works "$dllm" inspect F --json
	args gguf-inspect '<F><--json>'
	stand_in gguf-quantize 'exit 3'
	fails 3 '' "$dllm" quantize --type F32
	args gguf-quantize '<--type><F32>'
	works "$dllm" tokenize --model M --prompt "it's"
	args tok-encode "<--model=M><--prompt=it's>"
	works "$dllm" tokenize -m M "it's" --json --verbose --bos
	args tok-encode "<--model=M><--verbose><--bos><--prompt=it's><--json>"
	works "$dllm" tokenize -m M --pairs p --lines
	args tok-encode '<--model=M><--pairs=p><--lines>'
	works "$dllm" tokenize -m M - </dev/null
	args tok-encode '<--model=M>'
	fails 2 "dllm: ERROR: unknown option '--steps'
dllm: usage: dllm tokenize [--model PATH] [--prompt TEXT] [OPTION...] [PROMPT]" \
	    "$dllm" tokenize --steps 3 x
	works "$dllm" logits --model M --tokens '1 2 3' --rows 1:2 --output o.npy -t 2
	[ "$output" = "1 2 3
done" ]
	args dllm-forward '<--model=M><--rows=1:2><--logits=o.npy><--threads=2>'
	echo 4 5 | "$dllm" logits --model M >out
	printf '4 5\ndone\n' | cmp - out
	stand_in dllm-forward 'exit 7'
	fails 7 '' "$dllm" logits --model M --tokens 1
	fails 2 "dllm: ERROR: unexpected argument 'x'
dllm: usage: dllm logits [--model PATH] [--tokens IDS] [--rows POSITIONS] [--output FILE]" \
	    "$dllm" logits x
}

@test "dllm: the demo model is found beside the installed script and in the tree" {
	fails 1 'dllm: ERROR: the demo model is not installed (name one with --model PATH)' \
	    "$dllm" run x
	for place in share/dllm/models lib/models; do
		mkdir -p "new/$place" new/bin
		cp dllm dllm-suggest tok-* dllm-forward dllm-sample new/bin
		: >"new/$place/pocket-llada-q4_k_m.gguf"
		works new/bin/dllm run x
		args tok-decode "<--model=$dir/new/bin/../$place/pocket-llada-q4_k_m.gguf><--stop>"
		works new/bin/dllm tokenize --prompt x
		rm -r new
	done
	mkdir -p new/build/sanitize/bin new/lib/models
	cp dllm tok-* dllm-forward dllm-sample new/build/sanitize/bin
	: >new/lib/models/pocket-llada-q4_k_m.gguf
	works new/build/sanitize/bin/dllm run x
	ln -s "$dir/new/build/sanitize/bin/dllm" link
	works ./link run x
}

@test "dllm: a tool that is missing is named" {
	rm tok-decode
	PATH=/usr/bin:/bin fails 1 'dllm: ERROR: tok-decode is not installed' \
	    "$dllm" run --model M x
}

@test "dllm-suggest: closest word, none, usage" {
	works dllm-suggest stesp steps seed
	[ "$output" = steps ]
	fails 1 '' dllm-suggest zzzz steps
	fails 2 'dllm-suggest: ERROR: a word and at least one candidate are needed
dllm-suggest: usage: dllm-suggest WORD CANDIDATE...' dllm-suggest x
}
