#!/bin/sh
# The forward process apart from the sampler, two FIFOs between them, and all
# that crosses written down: LOG.requests and LOG.replies.  The FIFOs carry
# lines only, so the sampler must live on statistics (no --cfg-scale).
# usage: fifo.sh MODEL PROMPT LOG [dllm-sample OPTION...]
set -eu
[ $# -ge 3 ] || { sed -n 's/^# \(usage: \)/\1/p' "$0" >&2; exit 2; }
model=$1 prompt=$2 log=$3
shift 3

: >"$log.requests"
: >"$log.replies"
dir=$(mktemp -d "${TMPDIR:-/tmp}/dllm.XXXXXX")
# Opening both ways never blocks: it wakes a process that waits for the other
# end, and on closing that one sees the end of its input.
cleanup() {
	: <>"$dir/requests" <>"$dir/replies"
	wait
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
mkfifo "$dir/requests" "$dir/replies"

tee "$log.requests" <"$dir/requests" |
	dllm-forward --serve --model "$model" |
	tee "$log.replies" >"$dir/replies" &

# What the sampler starts as its forward: two cats, one for each direction.
# shellcheck disable=SC2016 # expanded by the inner shell
tok-encode --model "$model" --prompt "$prompt" |
	dllm-sample "$@" -- \
		sh -c 'cat "$0/replies" & exec cat >"$0/requests"' "$dir" |
	tok-decode --model "$model" --stop
echo
