#!/bin/sh
# Many prompts, several processes: GNU parallel runs dllm batch on parts of the
# file.  Run again after an interruption, it goes on where it was; the parts
# stand in OUTPUT.parts until all are answered.  For other machines that share
# this folder: PARALLEL='--sshlogin host1,host2 --workdir .'
# usage: batch-parallel.sh MODEL PROMPTS OUTPUT JOBS [dllm batch OPTION...]
set -eu
[ $# -ge 4 ] || { sed -n 's/^# \(usage: \)/\1/p' "$0" >&2; exit 2; }
model=$1 prompts=$2 output=$3 jobs=$4
shift 4
parts=$output.parts
case $prompts in
*.jsonl) suffix=.jsonl ;;
*) suffix=.txt ;;
esac

mkdir -p "$parts"
split -e -n "l/$jobs" --additional-suffix=$suffix "$prompts" "$parts/"
parallel --halt soon,fail=1 --jobs "$jobs" --quote \
	dllm batch --model "$model" "$@" --output '{.}.answers' '{}' \
	::: "$parts"/*$suffix
cat "$parts"/*.answers >"$parts/all"
mv "$parts/all" "$output"
rm -r "$parts"
