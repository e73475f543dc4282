#!/usr/bin/env bats
# bench/compare beside stand-ins for the other runtimes, which print what those
# do.  No time is checked.
# shellcheck disable=SC2016,SC2034,SC2154 # literal text; set for bats or by run

load helpers
BATS_TEST_TIMEOUT=300

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export CALLS=$PWD/calls
	stand_in llama-diffusion-cli '
	[ "$1" != --version ] || {
		printf "version: 7000 (abc1234)\nbuilt with cc\n" >&2
		exit
	}
	called llama-diffusion-cli "$@"
	printf "\rdiffusion step: 0/4 [     ] 0%%" >&2
	printf "\rdiffusion step: 1/4 [=    ] 25%%" >&2
	printf "\ntotal time: 20.50ms, time per step: 5.12ms, sampling" >&2
	printf " time per step: 0.20ms\n" >&2
	printf "\n2 + 3 = 5.\n"'
	for name in llama-bench ik; do
		stand_in "$name" "
		called $name"' "$@"
		while [ "$1" != -p ]; do shift; done
		printf "[\n  {\n    \"build_commit\": \"8cf427ff\",\n"
		printf "    \"build_number\": 5163,\n    \"model_size\": 4677,\n"
		printf "    \"n_prompt\": %d,\n    \"n_gen\": 0,\n" "$2"
		printf "    \"avg_ns\": 72135640,\n    \"stddev_ns\": 0,\n"
		printf "    \"samples_ns\": [ 72135640 ]\n  }\n]\n"'
	done
	stand_in diffuse '
	called diffuse "$@"
	echo "Loading model..." >&2
	echo "Generating 8 tokens with 4 diffusion steps..." >&2
	printf "\r  step 1/4" >&2
	printf "\n\nGenerated token IDs:\n" >&2
	echo 50,1020,50,50,1017,50,50,50'
	echo model >diffuse.gguf
}

# stand_in NAME BODY: a program that notes its arguments with called
stand_in() {
	printf '#!/bin/sh\ncalled() { echo "$*" >>"$CALLS"; }\n%s\n' "$2" >"$1"
	chmod +x "$1"
}

compare() {
	"$top/bench/compare" --model "$models/pocket-llada-q4_k_m.gguf" \
	    --max-tokens 8 --steps 4 --block-length 8 --quiet-wait 0 "$@"
}

all() {
	compare --llama-diffusion-cli ./llama-diffusion-cli \
	    --llama-bench ./llama-bench --ik-llama-bench ./ik \
	    --diffuse-cpp ./diffuse --diffuse-cpp-model diffuse.gguf \
	    --prompt 'What is 2 + 3?' "$@"
}

# section NAME FILE: the lines of an array
section() {
	sed -n '/^"'"$1"'":\[$/,/^\]/p' "$2" | grep '^{'
}

@test "compare: every runtime, interleaved, with its version" {
	works all --threads 1,2 --repeat 2 --prompt 'Spell the word milk.' \
	    --output out.json
	[ -z "$output" ]
	{
		for _ in 1 2; do
			for t in 1 2; do
				for _ in 1 2; do
					printf '%s\n' "dllm,$t" "dllm all rows,$t" \
					    "llama-diffusion-cli,$t" "llama-bench,$t" \
					    "ik-llama-bench,$t" "diffuse-cpp,$t"
				done
			done
		done
	} >want
	section runs out.json |
		sed 's/{"runtime":"\([^"]*\)","threads":\([0-9]*\).*/\1,\2/' |
		diff - want
	[ "$(cut -d ' ' -f 1 calls | head -n 4 | paste -sd ' ')" = \
	    'llama-diffusion-cli llama-bench ik diffuse' ]
	[ "$(section results out.json | wc -l)" -eq 12 ]
	section results out.json | grep -c '"runs":4,' | grep -x 12
	grep -x '"prompts":\["What is 2 + 3?","Spell the word milk."\],' out.json
	section programs out.json >list
	grep -q '"runtime":"dllm","version":"[0-9.]*","sha256":"[0-9a-f]\{64\}"' list
	grep -q '"llama-diffusion-cli","version":"7000 (abc1234)"' list
	grep -q '"llama-bench","version":"5163 (8cf427ff)"' list
	grep -q '"ik-llama-bench","version":"5163 (8cf427ff)"' list
	grep -q '"cpu":.*"flags":.*"commit":.*"date":.*"command":"bench/compare --model' out.json
}

@test "compare: what it asks of others, and makes of their answers" {
	all --threads 1 --repeat 1 --output out.json
	m=$models/pocket-llada-q4_k_m.gguf
	cat >want <<-END
	llama-diffusion-cli -m $m -p What is 2 + 3? -ub 26 -b 26 -c 26 -t 1 --temp 0 --seed 42 --diffusion-steps 4 --diffusion-eps 0.001 --diffusion-algorithm 4
	llama-bench -m $m -p 26 -n 0 -t 1 -b 26 -ub 26 -r 1 -o json
	ik -m $m -p 26 -n 0 -t 1 -b 26 -ub 26 -r 1 -o json
	diffuse -m diffuse.gguf --tokens $(tok-encode --model "$m" --prompt 'What is 2 + 3?' | tr ' ' ,) -n 8 -s 4 -t 1 --temp 0 --seed 42
	END
	diff want calls
	section runs out.json >list
	grep '"dllm"' list | grep -q '"tokens":26,"rows":"needed","forwards":4,.*"tokens_per_s":[0-9.]*,"peak_rss_bytes":[1-9]'
	grep '"dllm all rows"' list | grep -q '"rows":"all","forwards":4,'
	grep '"llama-diffusion-cli"' list >line
	grep -q '"rows":"all","forwards":4,"ms_per_step":5.125,"total_ms":20.50,"startup_ms":-*[0-9.]*,"steps_per_s":195.1220,"tokens_per_s_all":390.244,"tokens_per_s":390.244,' line
	grep '"ik-llama-bench"' list | grep -q '"rows":"last","forwards":1,"ms_per_step":72.136,"total_ms":null,"startup_ms":null,"steps_per_s":13.8628,"tokens_per_s_all":null,"tokens_per_s":null,'
	# of eight ids four stand before the end, one of them a mask
	grep '"diffuse-cpp"' list |
		sed 's/.*_all":\([0-9.]*\),"tokens_per_s":\([0-9.]*\).*/\1 \2/' |
		awk '{ exit !(int(1000 * $2 / $1 + 0.5) == 375) }'
	# without any other program
	compare --threads 1 --repeat 1 --prompt x >out.json
	[ "$(section runs out.json | wc -l)" -eq 2 ]
}

@test "compare: a program that is not there, fails or prints nonsense" {
	while IFS='|' read -r option path message; do
		run --separate-stderr compare "$option" "$path" --output out.json
		[ "$status" -eq 2 ]
		[ "${stderr_lines[0]}" = "compare: ERROR: $message" ]
		[ -z "$output" ]
	done <<-'END'
	--llama-bench|./none|--llama-bench './none': not a program
	--llama-diffusion-cli|./diffuse.gguf|--llama-diffusion-cli './diffuse.gguf': not a program
	--diffuse-cpp|./diffuse|--diffuse-cpp needs --diffuse-cpp-model
	--threads|1,x|--threads: 'x' is not a number from 1 to 999999999
	--threads|1,,2|--threads: '' is not a number from 1 to 999999999
	--other|x|unknown option '--other'
	END
	run --separate-stderr compare --prompt $'a\nb' --output out.json
	[ "$status" -eq 2 ]
	[ "${stderr_lines[0]}" = 'compare: ERROR: --prompt: there is a line feed in it' ]
	[ ! -e calls ]
	stand_in bad 'echo "total time: 0.00 ms"'
	fails 1 "compare: ERROR: --llama-diffusion-cli ./bad: no 'total time' above 0 in what it printed" \
	    compare --threads 1 --llama-diffusion-cli ./bad --output out.json
	stand_in bad 'echo one >&2; echo "cannot load the model" >&2; exit 3'
	fails 1 "compare: ERROR: --ik-llama-bench ./bad: exit status 3: cannot load the model" \
	    compare --threads 1 --ik-llama-bench ./bad --output out.json
	stand_in bad 'kill -9 $$'
	fails 1 "compare: ERROR: --llama-bench ./bad: exit status 137" \
	    compare --threads 1 --llama-bench ./bad --output out.json
	stand_in bad 'echo "hello"'
	for option in "llama-diffusion-cli:'total time'" \
	    "llama-bench:'n_prompt' of" "diffuse-cpp:'Generating'"; do
		run --separate-stderr compare --threads 1 "--${option%%:*}" ./bad \
		    --diffuse-cpp-model diffuse.gguf --output out.json
		[ "$status" -eq 1 ]
		[ "${#stderr_lines[@]}" -eq 1 ]
		[[ $stderr = "compare: ERROR: --${option%%:*} ./bad: no ${option#*:}"*" in what it printed" ]]
	done
	stand_in bad 'echo Generating >&2; echo 1,2,3'
	fails 1 "compare: ERROR: --diffuse-cpp ./bad: no list of 8 ids in what it printed" \
	    compare --threads 1 --diffuse-cpp ./bad --diffuse-cpp-model diffuse.gguf --output out.json
	fails 1 "tok-encode: ERROR: cannot open 'none.gguf': No such file or directory" \
	    compare --model none.gguf --threads 1 --output out.json
	[ ! -e out.json ]
}
