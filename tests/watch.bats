#!/usr/bin/env bats
# dllm-watch: frames from traces.  In the demo vocabulary ids below 256 are
# bytes, 1020 is the mask, 1017 and 1023 are end tokens.
# shellcheck disable=SC2016,SC2034,SC2154 # literal text; set for bats or by run

load helpers
BATS_TEST_TIMEOUT=300

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	model=$models/pocket-llada-q4_k_m.gguf
	cat >trace <<-'END'
	{"dllm_trace":1,"line":0,"prompt":2,"canvas":[65,66,1020,1020,1020,1020,1020],"options":{"steps":4},"seed":42}
	{"step":0,"block":0,"positions":[3],"ids":[67],"canvas":[65,66,1020,67,1020,1020,1020]}
	{"step":1,"block":0,"positions":[2,6],"ids":[68,1023],"canvas":[65,66,68,67,1020,1020,1023]}
	{"end":"length","steps":4,"forwards":2,"ms":1}
	END
}

# step ID...: a trace whose only step has this canvas
step() {
	local ids
	ids=$(printf '%s,' "$@")
	printf '{"dllm_trace":1,"prompt":0,"canvas":[%s]}\n' "${ids%,}"
	printf '{"step":0,"block":0,"positions":[],"canvas":[%s]}\n' "${ids%,}"
}

# last_frame TEXT: of the output of the step just watched
last_frame() {
	printf '%s\n' "$output" >&2
	local frame=${output##*step 1 }
	[ "$frame" != "$output" ]
	[ "${frame#*$'\n'}" = "$1" ]
}

@test "dllm-watch: one frame a step, from a file and from standard input" {
	works dllm-watch --model "$model" trace
	[ "$output" = 'step 0
_____

step 1/4  block 1  decided 1/5
_C___

step 2/4  block 1  decided 3/5
DC__$' ]
	frames=$output
	works dllm-watch --model "$model" <trace
	[ "$output" = "$frames" ]
	works dllm-watch --model "$model" --canvas - <trace
	[[ $output = *'ABDC__$' ]]
}

@test "dllm-watch: signs of a UTF-8 locale" {
	works env LC_ALL=C.UTF-8 dllm-watch --model "$model" trace
	[[ $output = *'DC░░∎' ]]
}

@test "dllm-watch: text over token borders, wide characters, wrapped rows" {
	step 226 130 172 1020 226 130 >t
	works dllm-watch --model "$model" t
	last_frame '€_��'
	# ten columns: four wide characters and two narrow ones, then one more
	step 230 151 165 230 151 165 230 151 165 230 151 165 65 66 67 >t
	works dllm-watch --model "$model" --width 10 t
	last_frame '日日日日AB
C'
	step 65 10 66 >t
	works dllm-watch --model "$model" t
	last_frame 'A
B'
}

@test "dllm-watch: no token can command the terminal" {
	step 27 91 50 74 7 13 127 155 194 155 226 128 174 65 >t
	works dllm-watch --model "$model" t
	last_frame '�[2J������A'
}

@test "dllm-watch: on a terminal frames are drawn over each other" {
	run script -qec "LC_ALL=C dllm-watch --model '$model' trace" /dev/null
	[ "$status" -eq 0 ]
	[[ $output = *$'\e[2A\r\e[Jstep 1/4'* ]]
	[[ $output = *$'_\e[7mC\e[27m___'* ]]
	run script -qec "dllm-watch --frames --model '$model' trace" /dev/null
	[[ $output != *$'\e'* ]]
}

@test "dllm-watch: a frame never exceeds the terminal" {
	ids=$(yes 65 | head -n 2000)
	# shellcheck disable=SC2086 # many ids
	step $ids >t
	run script -qec "stty rows 10 cols 40; dllm-watch --model '$model' t" \
	    /dev/null
	[ "$status" -eq 0 ]
	[ "$(printf '%s\n' "$output" | grep -c A)" -le 18 ]
}

@test "dllm-watch: failures" {
	fails 2 'dllm-watch: ERROR: --model is required
dllm-watch: usage: dllm-watch --model PATH [OPTION...] [FILE]' dllm-watch
	fails 1 "dllm-watch: ERROR: cannot open 'missing': No such file or directory" \
	    dllm-watch --model "$model" missing
	printf '{"step":0}\n' >t
	fails 1 'dllm-watch: ERROR: t: line 1: not a step trace' \
	    dllm-watch --model "$model" t
	printf '{"dllm_trace":2,"prompt":0,"canvas":[]}\n' >t
	fails 1 'dllm-watch: ERROR: t: line 1: a trace of another version' \
	    dllm-watch --model "$model" t
	printf '{"dllm_trace":1,"prompt":9,"canvas":[1]}\n' >t
	fails 1 'dllm-watch: ERROR: t: line 1: "prompt" is not a position' \
	    dllm-watch --model "$model" t
	printf '[]\n' >t
	fails 1 'dllm-watch: ERROR: t: line 1: not an object' \
	    dllm-watch --model "$model" t
	step 1 2 | head -c 70 >t
	run --separate-stderr dllm-watch --model "$model" t
	[ "$status" -eq 1 ]
	[ "$stderr" = 'dllm-watch: ERROR: t ended inside a line' ]
	run --separate-stderr dllm-watch --model missing.gguf t
	[ "$status" -eq 1 ]
	run --separate-stderr sh -c 'dllm-watch --model "$1" trace >/dev/full' - \
	    "$model"
	[ "$status" -eq 1 ]
	[ "$stderr" = 'dllm-watch: ERROR: trace: line 1: cannot write standard output: No space left on device' ]
}
