#!/bin/sh
# Replay a log of requests (fifo.sh writes one) without a sampler: prints the
# greeting and the replies.  Statistics are answered again, bit for bit; with
# LOGITS each request is answered with logits instead, the last one's stay in
# that .npy file.
# usage: replay.sh MODEL REQUESTS [LOGITS]
set -eu
[ $# -ge 2 ] || { sed -n 's/^# \(usage: \)/\1/p' "$0" >&2; exit 2; }
model=$1 requests=$2

if [ $# -eq 2 ]; then
	exec dllm-forward --serve --model "$model" <"$requests"
fi
sed 's/ want=stats .* : / : /' "$requests" |
	dllm-forward --serve --model "$model" --logits "$3"
