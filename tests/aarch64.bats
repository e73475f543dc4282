#!/usr/bin/env bats
# AArch64 under qemu: every CPU chooses its best group of kernels, and the bytes
# are those of this machine's build.  make check-aarch64 makes the cross build,
# names it in AARCH64 and runs the unit tests beside this file.
# shellcheck disable=SC2034,SC2154 # set for bats, set by helpers

load helpers
BATS_TEST_TIMEOUT=900

setup() {
	[ -n "${AARCH64-}" ] ||
		skip 'make check-aarch64 runs this, with a cross compiler and qemu'
	cd "$BATS_TEST_TMPDIR" || return
	case $AARCH64 in
	/*) arm=$AARCH64 ;;
	*) arm=$top/$AARCH64 ;;
	esac
	cpu=max
}

# on TOOL ARGUMENT...: a tool of the cross build on CPU $cpu
on() {
	qemu-aarch64 -cpu "$cpu" "$arm/bin/$1" "${@:2}"
}

# kernel: the group that dllm-forward chooses
kernel() {
	on dllm-forward --serve --model "$models/pocket-llada-q8_0.gguf" \
	    </dev/null | grep -o 'kernel=[a-z0-9]*'
}

@test "aarch64: each CPU gets the best group that it has" {
	[ "$(kernel)" = kernel=i8mm ]
	cpu=neoverse-n1
	[ "$(kernel)" = kernel=dotprod ]
	cpu=cortex-a57
	[ "$(kernel)" = kernel=neon ]
}

@test "aarch64: a group that the CPU or the build lacks is named" {
	export DLLM_CPU=dotprod
	fails 1 "dllm-forward: ERROR: DLLM_CPU: 'dotprod': this CPU lacks it" \
		qemu-aarch64 -cpu cortex-a57 "$arm/bin/dllm-forward" --model x
	export DLLM_CPU=i8mm
	fails 1 "dllm-forward: ERROR: DLLM_CPU: 'i8mm': this CPU lacks it" \
		qemu-aarch64 -cpu neoverse-n1 "$arm/bin/dllm-forward" --model x
	export DLLM_CPU=avx2
	fails 1 "dllm-forward: ERROR: DLLM_CPU: 'avx2': not in this build" \
		qemu-aarch64 -cpu max "$arm/bin/dllm-forward" --model x
}

@test "aarch64: the kernels of a CPU run on that CPU" {
	# max is among the unit tests.
	for cpu in neoverse-n1 cortex-a57; do
		qemu-aarch64 -cpu "$cpu" "$arm/tests/kern_check" >"$cpu.tap"
		[ "$(grep -c '^not ok' "$cpu.tap")" -eq 0 ]
		grep -q '^ok .* neon: matmul_quant$' "$cpu.tap"
		grep -q "^ok .* i8mm # SKIP 'i8mm': this CPU lacks it$" "$cpu.tap"
	done
	grep -q '^ok .* dotprod: matmul_quant$' neoverse-n1.tap
	grep -q "^ok .* dotprod # SKIP 'dotprod': this CPU lacks it$" cortex-a57.tap
}

@test "aarch64: every group gives this machine's logits" {
	for name in pocket-llada-q4_k_m pocket-llada-q8_0 pocket-dream-q4_k_m; do
		model=$models/$name.gguf
		tok-encode --model "$model" --prompt 'What is 2 + 3?' >ids
		dllm-forward --model "$model" <ids >want
		for group in scalar neon dotprod i8mm; do
			DLLM_CPU=$group on dllm-forward --model "$model" \
			    <ids >got
			same got want
		done
		on dllm-forward --model "$model" --activations f32 <ids >got
		dllm-forward --model "$model" --activations f32 <ids >want
		same got want
	done
}

@test "aarch64: weights of 16 bits give this machine's logits" {
	model=$models/pocket-llada-f16-00001-of-00002.gguf
	tok-encode --model "$model" --prompt 'What is 2 + 3?' >ids
	dllm-forward --model "$model" <ids >want
	on dllm-forward --model "$model" <ids >got
	same got want
}

@test "aarch64: the whole pipeline gives this machine's answer" {
	model=$models/pocket-llada-q4_k_m.gguf
	set -- --max-tokens 16 --steps 8 --temperature 0.7 --seed 7 --trace
	tok-encode --model "$model" --prompt 'What is 37 + 48?' |
		dllm-sample "$@" want.trace -- \
		    dllm-forward --serve --model "$model" |
		tok-decode --model "$model" --stop --lines >want
	on tok-encode --model "$model" --prompt 'What is 37 + 48?' |
		on dllm-sample "$@" got.trace -- qemu-aarch64 -cpu max \
		    "$arm/bin/dllm-forward" --serve --model "$model" |
		on tok-decode --model "$model" --stop --lines >got
	same got want
	for side in got want; do
		sed -E 's/"(ms|kernel|threads)":("[a-z0-9]*"|[0-9.e+-]*)/"\1":0/g' \
		    $side.trace >$side
	done
	same got want
}
