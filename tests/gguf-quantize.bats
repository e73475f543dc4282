#!/usr/bin/env bats
# gguf-quantize: the bytes of llama.cpp's quantiser, what it refuses, and that
# nothing is left behind.
# shellcheck disable=SC2034,SC2154 # set for bats or by run

load helpers
BATS_TEST_TIMEOUT=600
PATH=$BUILD/bench:$PATH

usage='gguf-quantize: usage: gguf-quantize [options] --model PATH --type TYPE --output PATH'
f16=$models/pocket-llada-f16-00001-of-00002.gguf

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# quantize TYPE OPTION...: from the demo model to out.gguf
quantize() {
	works gguf-quantize --model "$f16" --type "$1" --output out.gguf "${@:2}"
	[ -z "$output" ]
}

# has_sum FILE SHA256
has_sum() {
	echo "$2  $1" | sha256sum --check --quiet
}

@test "gguf-quantize: whole files equal those of llama.cpp, from a split one" {
	quantize Q4_K_M
	same out.gguf "$models/pocket-llada-q4_k_m.gguf"
	quantize Q8_0
	same out.gguf "$models/pocket-llada-q8_0.gguf"
	quantize Q5_K_M
	has_sum out.gguf 7941de76bd9594bb009990824532f2272f7382c6e431909e19529497c7234776
	quantize Q6_K
	has_sum out.gguf 046b122d661fea0c50fdebf862bddb900c6cb33f8c2366162c5e44b16bd3185f
}

@test "gguf-quantize: threads change no byte" {
	for n in 1 2 7; do
		quantize Q4_K_S --threads "$n"
		mv out.gguf "$n.gguf"
	done
	same 1.gguf 2.gguf
	same 1.gguf 7.gguf
}

@test "gguf-quantize: F32 with biases and another order of tensors" {
	for arch in llada dream; do
		tiny-model --arch "$arch" --output f32.gguf
		works gguf-quantize --model f32.gguf --type Q4_K_M \
		    --output out.gguf
		# Nothing is left to do in the other file but to sort it.
		works gguf-quantize --model "$golden/models/tiny-$arch-q4km.gguf" \
		    --type Q4_K_M --output sorted.gguf
		works gguf-quantize --model f32.gguf --type Q4_K_M --dry-run
		[[ ${lines[-1]} = 'total '* ]]
		bytes=${lines[-1]#total }
		bytes=${bytes%% *}
		[ "$bytes" -gt 800000 ]
		tail -c "$bytes" out.gguf >out.data
		tail -c "$bytes" sorted.gguf >sorted.data
		same out.data sorted.data
	done
}

@test "gguf-quantize: every type gives a model that runs" {
	gguf-synth --type F32 --tied --embd 96 --ffn 160 --heads 3 --layers 2 \
	    --output small.gguf
	gguf-synth --type BF16 --embd 256 --ffn 256 --output large.gguf
	echo 1 2 3 >ids
	n=0
	for type in Q4_K_M Q4_K_S Q5_K_M Q5_K_S Q6_K Q8_0 Q4_0 Q4_1 \
		Q5_0 Q5_1 F16 BF16 F32; do
		for model in small large; do
			run --separate-stderr gguf-quantize --model $model.gguf \
			    --type "$type" --output "out.gguf"
			[ "$status" -eq 0 ]
			works gguf-inspect --check out.gguf
			dllm-forward --model out.gguf --logits out.npy <ids
			works gguf-inspect out.gguf
			[[ $output = *"quantization: $type"$'\n'* ]]
			n=$((n + 1))
		done
	done
	[ "$n" -eq 26 ]
}

@test "gguf-quantize: rows that are no multiple of 256" {
	gguf-synth --type F32 --tied --embd 96 --ffn 256 --heads 3 --layers 1 \
	    --output in.gguf
	run --separate-stderr gguf-quantize --model in.gguf --type Q4_K_M \
	    --dry-run
	[ "$status" -eq 0 ]
	[ "$stderr" = 'gguf-quantize: warning: 7 of 11 tensors have rows of no multiple of the block and got another type' ]
	[ "$output" = 'output_norm.weight F32 F32 384
token_embd.weight F32 Q8_0 52224
blk.0.attn_k.weight F32 Q5_0 6336
blk.0.attn_norm.weight F32 F32 384
blk.0.attn_output.weight F32 Q5_0 6336
blk.0.attn_q.weight F32 Q5_0 6336
blk.0.attn_v.weight F32 Q8_0 9792
blk.0.ffn_down.weight F32 Q6_K 20160
blk.0.ffn_gate.weight F32 Q5_0 16896
blk.0.ffn_norm.weight F32 F32 384
blk.0.ffn_up.weight F32 Q5_0 16896
total 136128 bytes, 6.805 bits per weight' ]
}

@test "gguf-quantize: metadata is kept, what is about files and types is not" {
	quantize Q8_0
	gguf-inspect --full "$f16" | grep '^key ' |
		grep -vE '^key (split\.|general\.(file_type|quantization))' >want
	gguf-inspect --full out.gguf | grep '^key ' |
		grep -vE '^key general\.(file_type|quantization)' >got
	same want got
	works gguf-inspect --get general.file_type out.gguf
	[ "$output" = 7 ]
	works gguf-inspect --get general.quantization_version out.gguf
	[ "$output" = 2 ]
}

@test "gguf-quantize: a quantised file only when asked for" {
	q8=$models/pocket-llada-q8_0.gguf
	fails 1 "gguf-quantize: ERROR: $q8: tensor output.weight is Q8_0 already; --allow-requantize quantises it again" \
	    gguf-quantize --model "$q8" --type Q4_K_M --output out.gguf
	[ ! -e out.gguf ]
	works gguf-quantize --model "$q8" --type Q4_K_M --allow-requantize \
	    --output out.gguf
	works dllm run --model out.gguf --max-tokens 16 --steps 16 --prompt 'What is 37 + 48?'
	[ "$output" = '37 + 48 = 85.' ]
	# of the same type everything is copied
	works gguf-quantize --model "$q8" --type Q8_0 --output out.gguf
	same "$q8" out.gguf
}

@test "gguf-quantize: the output is never the input" {
	cp "$models/pocket-llada-q8_0.gguf" a.gguf
	ln a.gguf b.gguf
	ln -s a.gguf c.gguf
	for name in a b c; do
		fails 1 "gguf-quantize: ERROR: $name.gguf: the output is the input" \
		    gguf-quantize --model a.gguf --type Q8_0 --output "$name.gguf"
	done
	cp "$models"/pocket-llada-f16-*.gguf .
	second=pocket-llada-f16-00002-of-00002.gguf
	fails 1 "gguf-quantize: ERROR: $second: the output is the input" \
	    gguf-quantize --model "pocket-llada-f16-00001-of-00002.gguf" \
	    --type Q8_0 --output "$second"
	same "$second" "$models/$second"
	same a.gguf "$models/pocket-llada-q8_0.gguf"
}

@test "gguf-quantize: elements that are not finite" {
	tiny-model --nan blk.1.ffn_up.weight --output nan.gguf
	fails 1 'gguf-quantize: ERROR: nan.gguf: tensor blk.1.ffn_up.weight: element 131071 is not finite' \
	    gguf-quantize --model nan.gguf --type Q4_K_M --output out.gguf
	[ ! -e out.gguf ]
	run find . -name "*.gguf*" # temporaries too
	[ "$output" = ./nan.gguf ]
}

@test "gguf-quantize: data that ends early" {
	tiny-model --output whole.gguf
	head -c 4000000 whole.gguf >cut.gguf
	run --separate-stderr gguf-quantize --model cut.gguf --type Q8_0 \
	    --output out.gguf
	[ "$status" -eq 1 ]
	[[ $stderr = 'gguf-quantize: ERROR: cut.gguf: '* ]]
	[ -z "$output" ]
	[ ! -e out.gguf ]
}

@test "gguf-quantize: a full disk" {
	fails 1 'gguf-quantize: ERROR: /dev/full: cannot write the file: No space left on device' \
	    gguf-quantize --model "$f16" --type Q8_0 --output /dev/full
}

@test "gguf-quantize: an interrupted run leaves nothing" {
	gguf-synth --layers 24 --embd 512 --ffn 1024 --type F16 \
	    --output in.gguf
	echo old >out.gguf
	gguf-quantize --model in.gguf --type Q4_K_M --output out.gguf 3>&- &
	pid=$!
	began() { [ "$(find . -type f | wc -l)" -eq 3 ]; }
	wait_until 20 began
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 143 ]
	[ "$(echo ./*)" = './in.gguf ./out.gguf' ]
	[ "$(find . -type f | wc -l)" -eq 2 ]
	[ "$(cat out.gguf)" = old ]
}

@test "gguf-quantize: --verbose reports every tensor" {
	run --separate-stderr gguf-quantize --model "$f16" --type Q6_K \
	    --output out.gguf --verbose
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[[ ${stderr_lines[0]} = 'gguf-quantize: output.weight: F16 to Q6_K, relative error 0.0'* ]]
	[ "${#stderr_lines[@]}" -eq 45 ]
	[[ ${stderr_lines[44]} = 'gguf-quantize: total: 57 tensors, 11.3 MB to 4.6 MB, 6.578 bits per weight, '* ]]
}

@test "gguf-quantize: usage" {
	fails 2 "gguf-quantize: ERROR: --output is required (or --dry-run)
$usage" gguf-quantize --model "$f16" --type Q8_0
	fails 2 "gguf-quantize: ERROR: --output and --dry-run exclude each other
$usage" gguf-quantize --model "$f16" --type Q8_0 --output x --dry-run
	run --separate-stderr gguf-quantize --model "$f16" --output x
	[ "$status" -eq 2 ]
	[ "${stderr_lines[1]}" = "$usage" ]
	fails 1 "gguf-quantize: ERROR: cannot open 'none': No such file or directory" \
	    gguf-quantize --model none --type Q8_0 --output x
	cp "$golden/gguf/any-nested-array.gguf" .
	fails 1 "gguf-quantize: ERROR: any-nested-array.gguf: key n at byte 24: arrays of arrays are not supported" \
	    gguf-quantize --model any-nested-array.gguf --type Q8_0 --output x
	[ ! -e x ]
}
