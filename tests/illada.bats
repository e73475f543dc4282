#!/usr/bin/env bats
# iLLaDA: the architecture llada with fewer key than query heads, no matrix for
# the output, and its special tokens, the mask too, at the other end of the
# vocabulary.  All of it is in the file; no tool knows the family.
# shellcheck disable=SC2016,SC2034,SC2154 # literal text; set for bats or by run

load helpers
BATS_TEST_TIMEOUT=120
PATH=$BUILD/bench:$PATH

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	synth Q4_K_M
}

# synth TYPE: a model of random weights, m.gguf, that is shaped like the real
# one: four query heads to a key head
synth() {
	gguf-synth --family illada --tied --type "$1" --layers 3 --embd 256 \
	    --ffn 448 --heads 8 --kv-heads 2 --vocab 300 --output m.gguf
}

@test "illada: what the file says is what the tools know" {
	gguf-inspect m.gguf >facts
	grep -q '^tensor blk.0.attn_k.weight: Q4_K \[256, 64\]' facts
	run ! grep '^tensor output\.weight' facts
	works dllm-forward --serve --model m.gguf </dev/null
	[[ $output = 'dllm-forward 1 arch=llada vocab=300 mask=5 eos=2,6 '* ]]
	works tok-encode --model m.gguf --prompt Hi
	[ "$output" = '0 3 124 122 108 121 4 17 17 79 112 6 3 104 122 122 112 122 123 104 117 123 4 17 17' ]
	works tok-decode --model m.gguf < <(echo 79 112 5 40)
	[ "$output" = 'Hi!' ]
}

@test "illada: logits are those of double precision" {
	echo 0 79 112 40 5 5 299 5 6 2 17 5 5 >ids
	for type in F32 F16 Q8_0 Q4_K_M mixed; do
		synth $type
		ref64 --model m.gguf <ids >ref.npy
		for n in 1 2 7; do
			dllm-forward --model m.gguf --threads $n \
			    --activations f32 --logits f32.npy <ids
			npy-cmp --max-rel-l2 1e-5 --argmax clear f32.npy \
			    ref.npy >&2
			dllm-forward --model m.gguf --threads $n \
			    --logits q8.npy <ids
			npy-cmp --max-rel-l2 0.025 --argmax clear q8.npy \
			    ref.npy >&2
		done
	done
}

@test "illada: prompt to text, by the pipeline and by dllm run" {
	for options in '' '--temperature 1 --seed 3 --no-eos' \
	    '--algorithm entropy --steps 7 --demote-eos'; do
		# shellcheck disable=SC2086 # several options
		tok-encode --model m.gguf --prompt 'What is 2 + 3?' |
			dllm-sample --max-tokens 24 --trace trace $options -- \
			    dllm-forward --serve --model m.gguf >ids
		tok-decode --model m.gguf --stop <ids >want
		echo >>want
		# shellcheck disable=SC2086
		dllm run --model m.gguf -n 24 $options 'What is 2 + 3?' >got
		same want got
		# all masks, 24 at first, became tokens, and none became one
		grep -q '"canvas":\[0,3,.*,17\(,5\)\{24\}\]' trace
		run ! grep -qw 5 ids
		grep -q '"mask":5,"eos":\[2,6\]' trace
	done
	[ "$(wc -c <got)" -gt 4 ]
	# --no-eos bans the model's own end token
	dllm run --model m.gguf -n 4 --no-eos --trace trace x
	grep -q '"ban":\[5,2\]' trace
}

@test "illada: in every other tool too" {
	works dllm infill --model m.gguf 'ab[MASK:3]cd[MASK]'
	[[ $output = ab*cd* ]]
	works dllm infill --model m.gguf --fill-only '[MASK]b'
	[ "${#lines[@]}" -eq 1 ]
	works dllm score --model m.gguf --samples 4 \
	    < <(echo '{"prompt":"a","answer":"b"}')
	[ -n "$output" ]
	printf 'a\nb\n' | dllm chat --model m.gguf -n 6 --no-eos >said
	[ "$(wc -l <said)" -ge 2 ]
	printf 'a\nb\n' | dllm batch --model m.gguf -n 6 --output answers
	[ "$(wc -l <answers)" -eq 2 ]
	synth F32
	gguf-quantize --model m.gguf --type Q4_K_M --output q4.gguf
	gguf-inspect q4.gguf >facts # the head's type, for both of its uses
	grep -q '^tensor token_embd.weight: Q6_K ' facts
	dllm run --model q4.gguf -n 6 --json a | grep -q '"forwards":'
}
