#!/usr/bin/env bats
# The programs in bench/: what they accept, and that results are complete.  No
# time is checked.
# shellcheck disable=SC2034,SC2154 # set for bats or by run

load helpers
BATS_TEST_TIMEOUT=300

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=$BUILD/bench:$PATH
}

# results FILE: its lines between "results":[ and ]}
results() {
	sed -n '/^"results":\[$/,/^\]}$/p' "$1" | sed '1d; $d'
}

# complete FILE BENCH COUNT: it is a result file with so many results
complete() {
	[ "$(head -n 1 "$1")" = "{\"bench\":\"$2\"," ]
	for key in cpu flags groups compiler cflags commit dirty date command \
	    load busy cores; do
		sed -n 2p "$1" | grep -q "\"$key\":" || {
			printf '%s: no %s\n' "$1" "$key" >&2
			return 1
		}
	done
	[ "$(tail -n 1 "$1")" = ']}' ]
	[ "$(results "$1" | grep -c '^{.*}')" -eq "$3" ]
}

@test "gemm: any length, and every list is checked" {
	works gemm --length 48,3 --seconds 0.001 --repeat 1 --output out.json
	[ -z "$output" ]
	complete out.json gemm 2
	results out.json | sed -n 1p | grep -q '"tokens":48,'
	results out.json | sed -n 2p | grep -q '"tokens":3,'
	results out.json | grep -c '"weight_gb_per_s":[0-9.]*,"allocated_bytes":[1-9]'
	rm out.json
	while read -r option word message; do
		fails 2 "gemm: ERROR: $option: $message
gemm: usage: gemm [options]" gemm "$option" "$word" --output out.json
		[ ! -e out.json ]
	done <<-END
	--length 48x '48x' is not a number from 1 to 65536
	--length 8,,9 '' is not a number from 1 to 65536
	--threads 0 '0' is not a number from 1 to 256
	--type Q4_K,Q4K unknown 'Q4K'
	--shape ffn unknown 'ffn'
	--cpu avx3 unknown 'avx3'
	END
}

@test "gemm: 'all' has the lengths and shapes of the real models" {
	grep -q '^#define ALL_LENGTHS "1,8,32,96,148,256,512,1024"$' \
	    "$top/bench/gemm.c"
	works gemm --length 1 --shape all --seconds 0.001 --repeat 1
	# q, up, down, head of LLaDA-8B; q, k, up, down, head of Dream-7B
	for sizes in 4096,4096 4096,12288 12288,4096 4096,126464 \
	    3584,3584 3584,512 3584,18944 18944,3584 3584,152064; do
		grep -q "\"n_in\":${sizes%,*},\"n_out\":${sizes#*,}," \
		    <<<"$output"
	done
}

@test "gemm: every group has a peak to share, in floats too" {
	gemm --cpu all --type F16,Q4_K --length 4 --seconds 0.001 --repeat 1 |
		grep '"kernels":' >lines
	grep -v '"kernels":"\(scalar\|neon\|dotprod\|i8mm\)"' lines >wide || skip "only scalar here"
	run grep '"peak":""\|"share":0.000' wide
	[ "$status" -eq 1 ]
}

@test "step: threads, lengths and rows are lists" {
	gguf-synth --output m.gguf
	works step --model m.gguf --length 8,20 --rows 4,0 --threads 1,2 \
	    --repeat 1 --output out.json
	complete out.json step 8
	[ "$(results out.json | grep -c '"threads":2,"tokens":20,"rows":20,')" -eq 1 ]
	[ "$(results out.json | grep -c '"threads":1,"tokens":8,"rows":4,')" -eq 1 ]
	[ "$(results out.json | grep -c '"model":"m.gguf".*"peak_rss_bytes":[1-9]')" -eq 8 ]
	fails 2 "step: ERROR: --length: '1' is not a number from 2 to 1048576
step: usage: step [options] --model PATH" step --model m.gguf --length 1
	fails 1 "step: ERROR: cannot open 'missing.gguf': No such file or directory" \
	    step --model missing.gguf --output new.json
	[ ! -e new.json ]
}

@test "peak: one thread and all" {
	works peak --threads 2 --output out.json
	complete out.json peak 2
	results out.json | grep -c '"read_gb_per_s":[0-9]' | grep -x 2
}

@test "timed: facts of a command, and its exit status" {
	works timed --output facts --stderr log --first 'two' -- sh -c \
	    'echo one >&2; sleep 0.2; printf "\rtwo" >&2; sleep 0.3; echo out'
	[ "$output" = out ]
	printf 'one\n\rtwo' | cmp - log
	[[ $(cat facts) =~ ^'{"wall_ms":'([0-9]+)\.[0-9]+',"first_ms":'([0-9]+)\.\
[0-9]+',"cpu_ms":'[0-9.]+',"peak_rss_bytes":'[1-9][0-9]+',"busy_before":'\
[0-9.]+',"busy_others":'[0-9.]+',"quiet":'(true|false)',"status":0}'$ ]]
	[ "${BASH_REMATCH[2]}" -lt "${BASH_REMATCH[1]}" ]
	run timed --output facts --first never -- sh -c 'kill -9 $$'
	[ "$status" -eq 137 ]
	grep -q '"first_ms":null,.*"status":137}$' facts
	run -127 timed --output facts -- ./none
	[ "$output" = "timed: ERROR: cannot run './none': No such file or directory" ]
	fails 2 "timed: ERROR: the command to run is missing
timed: usage: timed [options] --output FILE -- COMMAND [ARG...]" \
	    timed --output facts
	fails 2 "timed: ERROR: --output and --stderr are one file
timed: usage: timed [options] --output FILE -- COMMAND [ARG...]" \
	    timed --output facts --stderr facts -- true
}

@test "timed: a signal ends the wait for a quiet machine, and starts nothing" {
	timeout 60 sh -c 'while :; do :; done' 3>&- &
	busy=$!
	timed --output facts --quiet-wait 60 -- touch started 3>&- &
	pid=$!
	wait_until 20 eval '[ -e .facts.* ]'
	kill "$pid"
	status=0
	wait "$pid" || status=$?
	kill "$busy"
	[ "$status" -eq 143 ]
	[ -z "$(ls -A)" ]
}

@test "generate: a result for each temperature and way of reducing" {
	works "$top/bench/generate" --length 40 --steps 4 --repeat 2 --threads 1 \
	    --output out.json
	[ -z "$output" ]
	complete out.json generate 4
	for key in temperature:0,.*want.:.stats temperature:0.7,.*want.:.logits \
	    threads:1 tokens:40 prompt_tokens:20 steps:4 startup_ms:[0-9] \
	    first_step_ms:[0-9] ms_per_step:[0-9] tokens_per_s_all:[0-9] \
	    tokens_per_s:[0-9] steps_per_s:[0-9] sampler_share:0.[0-9] \
	    outside_share:0.[0-9] peak_rss_bytes:[1-9] cpus:[0-9] quiet:; do
		results out.json | grep -q "\"${key%%:*}\":${key#*:}" || {
			printf 'missing: %s\n' "$key" >&2
			false
		}
	done
	[[ $(sed -n 2p out.json) = *'"command":"bench/generate --length 40 --steps'* ]]
}

@test "generate: failures leave no file" {
	fails 1 "tok-encode: ERROR: cannot open 'none.gguf': No such file or directory" \
	    "$top/bench/generate" --model none.gguf --output out.json
	run --separate-stderr "$top/bench/generate" --length 20 --output out.json
	[ "$status" -eq 2 ]
	[ "${stderr_lines[0]}" = "generate: ERROR: --length 20: the prompt alone has 20 tokens" ]
	run --separate-stderr "$top/bench/generate" --temperature hot --output out.json
	[ "$status" -ne 0 ]
	[[ ${stderr_lines[0]} = "dllm-sample: ERROR: --temperature 'hot': "* ]]
	fails 1 "generate: ERROR: cannot write 'none/out.json'" "$top/bench/generate" \
	    --length 24 --repeat 1 --steps 1 --temperature 0 --output none/out.json
	[ ! -e out.json ]
}

@test "generate: what cannot be is said before anything is measured" {
	stub=$PWD/build
	mkdir -p build/bin build/bench
	cp "$BUILD/bench/machine" build/bench
	for program in dllm tok-encode; do
		printf '#!/bin/sh\ntouch measured\n' >"build/bin/$program"
		chmod +x "build/bin/$program"
	done
	while IFS='|' read -r want option value message; do
		run --separate-stderr env BUILD="$stub" "$top/bench/generate" \
		    "$option" ${value:+"$value"}
		[ "$status" -eq "$want" ]
		[ "${stderr_lines[0]}" = "generate: ERROR: $message" ]
		[ -z "$output" ]
	done <<-'END'
	1|--output|.|cannot write '.': Is a directory
	1|--output|none/out|cannot write 'none/out'
	2|--output||--output: a value is missing
	2|--temperature|0,,1|--temperature: '0,,1' is not a list of numbers
	2|--bogus||unknown option '--bogus'
	2|bogus|x|unknown option 'bogus'
	END
	fails 1 "generate: ERROR: cannot create '': the name is empty" \
	    env BUILD="$stub" "$top/bench/generate" --output ''
	fails 1 "generate: ERROR: cannot create a folder in './none'" \
	    env TMPDIR=./none "$top/bench/generate"
	rm build/bench/machine
	fails 1 "generate: ERROR: $stub/bench/machine is missing: run make all bench" \
	    env BUILD="$stub" "$top/bench/generate"
	[ ! -e measured ]
	for script in generate compare record tables eval; do
		works env BUILD="$stub" "$top/bench/$script" --help
		[[ $output = "usage: bench/$script "* ]]
	done
}

@test "generate: where results go" {
	generate() {
		"$top/bench/generate" --length 24 --repeat 1 --steps 1 \
		    --temperature 0 "$@"
	}
	echo old >file.json
	chmod 640 file.json
	ln -s file.json link.json
	works generate --output link.json
	[ -L link.json ]
	[ "$(stat -c %a file.json)" = 640 ]
	complete file.json generate 2
	[ "$(echo *.json*)" = 'file.json link.json' ]
	run --separate-stderr eval 'generate >/dev/full'
	[ "$status" -eq 1 ]
	[ "$stderr" = 'generate: ERROR: cannot write standard output' ]
	fails 1 "generate: ERROR: cannot write '/dev/full'" \
	    generate --output /dev/full
}

@test "generate: ended by a signal, it leaves nothing behind" {
	mkdir tmp
	for signal in TERM:143 QUIT:131 PIPE:141; do
		# bats has what it runs ignore QUIT
		TMPDIR=$PWD/tmp env --default-signal "$top/bench/generate" \
		    --length 500 --steps 480 --output out.json 3>&- &
		pid=$!
		wait_until 20 eval '[ -e tmp/dllm.*/answer ]'
		kill -s "${signal%:*}" "$pid"
		status=0
		wait "$pid" || status=$?
		[ "$status" -eq "${signal#*:}" ]
		[ -z "$(ls tmp)" ]
		[ ! -e out.json ]
	done
}
