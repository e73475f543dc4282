#!/bin/sh
# The denoising loop with one process per step and files in between.  Prints
# the canvas after every step, a token line each: those of the live loop.
# usage: stepwise.sh MODEL PROMPT TOKENS STEPS [dllm-sample OPTION...]
set -eu
[ $# -ge 4 ] || { sed -n 's/^# \(usage: \)/\1/p' "$0" >&2; exit 2; }
model=$1 prompt=$2 tokens=$3 steps=$4
shift 4
dir=$(mktemp -d "${TMPDIR:-/tmp}/dllm.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

dllm-forward --serve --model "$model" </dev/null >"$dir/greeting"
tok-encode --model "$model" --prompt "$prompt" >"$dir/prompt"
mask=$(sed 's/.* mask=\([0-9]*\).*/\1/' "$dir/greeting")
masks=$(seq "$tokens" | sed "s/.*/ $mask/" | tr -d '\n')
sed "s/\$/$masks/" "$dir/prompt" >"$dir/canvas"
set -- dllm-sample "$@" --steps "$steps" --greeting "$dir/greeting" \
	--prompt-length "$(wc -w <"$dir/prompt")"

for step in $(seq 0 $((steps - 1))); do
	"$@" --step "$step" --plan <"$dir/canvas" >"$dir/plan"
	rows=$(head -n 1 "$dir/plan")
	uncond=$(sed 1d "$dir/plan") # with --cfg-scale: the canvas without prompt
	if [ -n "$rows" ]; then      # else this step changes nothing
		dllm-forward --model "$model" --rows "$rows" \
			--logits "$dir/cond.npy" <"$dir/canvas"
		[ -z "$uncond" ] || printf '%s\n' "$uncond" |
			dllm-forward --model "$model" --rows "$rows" \
				--logits "$dir/uncond.npy"
		"$@" --step "$step" --logits "$dir/cond.npy" \
			${uncond:+--uncond "$dir/uncond.npy"} \
			<"$dir/canvas" >"$dir/next"
		mv "$dir/next" "$dir/canvas"
	fi
	cat "$dir/canvas"
done
