#!/bin/sh
# From prompt to text: the pipeline that dllm run composes.
# usage: generate.sh MODEL PROMPT [dllm-sample OPTION...]
set -eu
[ $# -ge 2 ] || { sed -n 's/^# \(usage: \)/\1/p' "$0" >&2; exit 2; }
model=$1 prompt=$2
shift 2

tok-encode --model "$model" --prompt "$prompt" |
	dllm-sample "$@" -- dllm-forward --serve --model "$model" |
	tok-decode --model "$model" --stop
echo
