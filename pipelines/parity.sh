#!/bin/sh
# Where two folders of stages (dllm-forward --dump) part: compares them in the
# order data flows and stops at the first stage out of tolerance.
# usage: parity.sh DUMP REFERENCE [npy-cmp OPTION...]   (--max-rel-l2 1e-5)
set -eu
[ $# -ge 2 ] || { sed -n 's/^# \(usage: \)/\1/p' "$0" >&2; exit 2; }
dump=$1 reference=$2
shift 2
[ $# -gt 0 ] || set -- --max-rel-l2 1e-5

# has_layer NN: one of the folders does (if only one, comparing says so)
has_layer() {
	[ -e "$dump/$1.attn_norm.npy" ] || [ -e "$reference/$1.attn_norm.npy" ]
}

stages() {
	echo embd
	n=0
	while layer=$(printf %02d "$n") && has_layer "$layer"; do
		for stage in attn_norm q k v attn attn_out attn_res \
			ffn_norm ffn_act ffn_out out; do
			echo "$layer.$stage"
		done
		n=$((n + 1))
	done
	printf '%s\n' norm logits
}

for stage in $(stages); do
	status=0
	facts=$(npy-cmp "$@" "$dump/$stage.npy" "$reference/$stage.npy") ||
		status=$?
	printf '%s\n' "$facts" | sed -n "s/^rel-l2/$stage rel-l2/p"
	[ "$status" -ne 0 ] || continue
	[ "$status" -ne 1 ] ||
		printf '%s is the first stage that differs:\n%s\n' "$stage" "$facts"
	exit "$status"
done
