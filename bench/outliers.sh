#!/bin/sh
# What activations of 8 bits cost where a model has massive activations on
# control tokens: relative L2 of logits to the transformer in double precision,
# on random-weight models as wide as LLaDA-8B and Dream-7B, with 0 to 8 planted
# channels (gguf-synth --outliers).  Beside dllm-forward (one scale per 32
# elements): float activations, and one scale per 256, which is how llama.cpp
# rounds (ref64 --round 256 gives its logits).  Prints JSON; some minutes.
# usage: make bench tests, then
#        PATH=build/bin:build/tests:build/bench:$PATH bench/outliers.sh [LAYERS]
set -eu
layers=${1:-2}
dir=$(mktemp -d "${TMPDIR:-/tmp}/dllm.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
machine "bench/outliers.sh${1:+ $1}" >"$dir/machine"
cd "$dir"

# fact NAME FILE [npy-cmp OPTION...]: a number of the comparison with ref.npy
fact() {
	fact=$1 file=$2
	shift 2
	npy-cmp --json --max-abs 1e30 "$@" "$file" ref.npy |
		sed "s/.*\"$fact\":\([^,]*\),.*/\1/"
}

# record WAY FILE: distances over the control tokens' rows and the others
record() {
	printf '%s\n{"shape":"%s","layers":%s,"type":"Q4_K_M","outliers":%s' \
		"$separator" "$shape" "$layers" "$n"
	printf ',"way":"%s","rel_l2":%.3g,"rel_l2_control":%.3g' "$1" \
		"$(fact rel_l2 "$2")" "$(fact rel_l2 "$2" --rows "$control")"
	printf ',"rel_l2_other":%.3g,"rows":%s,"argmax_same":%s' \
		"$(fact rel_l2 "$2" --rows "$other")" \
		"$(fact rows "$2")" "$(fact argmax_same "$2")"
	printf ',"clear":%s,"clear_same":%s}' "$(fact clear "$2")" \
		"$(fact clear_same "$2")"
	separator=,
}

measure() {
	gguf-synth --shape "$shape" --layers "$layers" --vocab 2048 \
		--type Q4_K_M --outliers "$n" --output m.gguf
	ref64 --model m.gguf <ids >ref.npy
	ref64 --model m.gguf --round 256 <ids >scale-256.npy
	dllm-forward --model m.gguf --logits scale-32.npy <ids
	dllm-forward --model m.gguf --activations f32 --logits f32.npy <ids
	record 'dllm, q8' scale-32.npy
	record 'dllm, f32' f32.npy
	record 'one scale per 256' scale-256.npy
}

printf '{"bench":"outliers",\n%s\n"results":[' "$(cat machine)"
separator=
for shape in llada-8b dream-7b; do
	# a turn: control tokens, text, line feeds, masks at the end
	case $shape in
	llada-8b) ids='2040 2045 65 66 67 10 68 69 2047 10' mask=2044 ;;
	dream-7b) ids='2041 65 66 67 10 68 69 70 2042 10' mask=2047 ;;
	esac
	echo "$ids $mask $mask $mask $mask $mask $mask" >ids
	# rows of the array: those of llada-8b are positions, dream-7b has none
	# for position 0, and each is computed at the position before
	case $shape in
	llada-8b) control=0:2,5,8:2 other=2:3,6:2,10:6 ;;
	dream-7b) control=0,4,8:2 other=1:3,5:3,10:5 ;;
	esac
	for n in 0 1 2 4 8; do
		measure
	done
done
printf '\n]}\n'
