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
	    load cores; do
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
	grep -v '"kernels":"\(scalar\|neon\)"' lines >wide || skip "only scalar here"
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
	fails 1 "step: ERROR: missing.gguf: cannot open: No such file or directory" \
	    step --model missing.gguf --output new.json
	[ ! -e new.json ]
}

@test "peak: one thread and all" {
	works peak --threads 2 --output out.json
	complete out.json peak 2
	results out.json | grep -c '"read_gb_per_s":[0-9]' | grep -x 2
}
