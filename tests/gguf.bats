#!/usr/bin/env bats
# gguf-inspect, and the GGUF reader through it.
# shellcheck disable=SC2034,SC2154,SC2016 # set for bats, set by run, literal

load helpers
BATS_TEST_TIMEOUT=300

usage='gguf-inspect: usage: gguf-inspect [--json | --full] [--get KEY | --check | --tensor NAME --output PATH] FILE'

setup() {
	files=$golden/gguf
	tab=$(printf '\t')
	# run leaves files of its own in the folder above
	mkdir "$BATS_TEST_TMPDIR/work"
	cd "$BATS_TEST_TMPDIR/work" || return 1
}

# Little memory: no allocation may follow a number in a file.
small_memory() {
	case $BUILD in
	*sanitize*) export ASAN_OPTIONS=max_allocation_size_mb=4 ;;
	*) ulimit -v 40000 ;;
	esac
}

# plant FILE BYTE HEX...: overwrite bytes.
plant() {
	local file=$1 at=$2
	shift 2
	# shellcheck disable=SC2059 # the format is the data
	printf "$(printf '\\x%s' "$@")" |
		dd of="$file" bs=1 seek="$at" conv=notrunc 2>/dev/null
}

# offset FILE TENSOR: where its data begins.
offset() {
	gguf-inspect "$1" | sed -n "s/^tensor $2: .* offset \([0-9]*\) bytes.*/\1/p"
}

@test "every file that must be refused is, for the reason in the table" {
	cd "$files"
	small_memory
	n=0
	while IFS=$tab read -r file message; do
		fails 1 "gguf-inspect: ERROR: $message" gguf-inspect "$file"
		n=$((n + 1))
	done <"$top/tests/gguf.messages"
	[ "$n" -eq 58 ]
}

@test "the table of refusals is the one that is expected, and the rest opens" {
	out=$PWD
	cd "$files"
	small_memory
	accepted=0 rejected=0
	while IFS=$tab read -r file verdict _ level _; do
		if grep -q "^$file$tab" "$top/tests/gguf.messages"; then
			[ "$verdict" != accept ]
			rejected=$((rejected + 1))
		else
			[ "$level" != container ] || [ "$verdict" != reject ]
			for as in --full --json; do
				gguf-inspect $as "$file" >"$out/out" 2>"$out/err"
				[ -s "$out/out" ]
				[ ! -s "$out/err" ] || [[ $file = model-data-* ]]
			done
			accepted=$((accepted + 1))
		fi
	done < <(tail -n +2 expected.tsv)
	[ "$rejected" -eq 58 ]
	[ "$accepted" -eq $(($(wc -l <expected.tsv) - 1 - rejected)) ]
}

@test "what is not a regular file is refused without being read" {
	mkdir dir
	mkfifo fifo
	: >empty
	fails 1 "gguf-inspect: ERROR: cannot read 'dir': is a directory" \
		gguf-inspect dir
	fails 1 "gguf-inspect: ERROR: cannot read 'fifo': not a regular file" \
		gguf-inspect fifo
	fails 1 "gguf-inspect: ERROR: cannot read '/dev/zero': not a regular file" \
		gguf-inspect /dev/zero
	fails 1 "gguf-inspect: ERROR: empty: the file is empty" \
		gguf-inspect empty
	fails 1 "gguf-inspect: ERROR: cannot open '': No such file or directory" \
	    gguf-inspect ''
	fails 1 "gguf-inspect: ERROR: cannot open 'none': No such file or directory" \
		gguf-inspect none
}

@test "a sparse file of zeros costs neither time nor memory" {
	small_memory
	truncate -s 16M zeros
	fails 1 "gguf-inspect: ERROR: zeros: header: not a GGUF file: the first bytes are 00 00 00 00" \
		gguf-inspect zeros
	# 2^19 tensors announced, enough bytes for them, all of them zero:
	# scalars without a name, the second where the first one is
	plant zeros 0 47 47 55 46 03 00 00 00 00 00 08 00
	fails 1 "gguf-inspect: ERROR: zeros: tensor  at byte 48: data at offset 0, expected 32" \
		gguf-inspect zeros
}

@test "the listing: every kind of value" {
	cd "$files"
	works gguf-inspect ok-all-types.gguf
	[ "$output" = 'file: ok-all-types.gguf
version: 3
bytes: 608
alignment: 32
architecture: none
quantization: unknown
tensors: 0
parameters: 0
tensor bytes: 0
bits per weight: 0.0000
key a.bool: bool[2] [true, false]
key a.f32: f32[2] [1, nan]
key a.f64: f64[1] [0.1]
key a.i16: i16[1] [1]
key a.str: string[2] ["x", ""]
key a.u64: u64[1] [7]
key a.u8: u8[2] [1, 2]
key e.arr: u32[0] []
key e.str: string ""
key t.bool: bool true
key t.f32: f32 1.5
key t.f64: f64 -2.5
key t.i16: i16 -1
key t.i32: i32 -1
key t.i64: i64 -9223372036854775808
key t.i8: i8 -1
key t.str: string "hé 中"
key t.u16: u16 65535
key t.u32: u32 4294967295
key t.u64: u64 18446744073709551615
key t.u8: u8 255' ]
}

@test "the listing: a model in two files" {
	cd "$files"
	works gguf-inspect split-ok-00001-of-00002.gguf
	grep -v '^key [^s]' <<<"$output" >list
	cat >want <<-'END'
	file: split-ok-00001-of-00002.gguf
	version: 3
	bytes: 2560
	alignment: 32
	file: split-ok-00002-of-00002.gguf
	version: 3
	bytes: 1408
	alignment: 32
	architecture: llada
	quantization: unknown
	tensors: 12
	parameters: 888
	tensor bytes: 1824
	bits per weight: 16.4324
	type F32: tensors 3 parameters 24 bytes 96
	type F16: tensors 9 parameters 864 bytes 1728
	key split.count: u16 2
	key split.no: u16 0
	key split.tensors.count: i32 12
	END
	grep -v '^tensor [a-z]*[._]' list | diff want -
	[ "$(grep -c '^tensor .* file 1$' list)" -gt 0 ]
	[ "$(grep -c '^tensor .* file 2$' list)" -gt 0 ]
	[ "$(grep -c '^tensor blk.*file [12]$' list)" -eq 9 ]
}

@test "bytes that are no text are escaped, also in JSON" {
	works gguf-inspect "$files/ok-key-not-utf8.gguf"
	[ "$(tail -n 1 <<<"$output")" = 'key \xff\xfe: u32 1' ]
	works gguf-inspect --json "$files/ok-key-not-utf8.gguf"
	[[ $output = *$'"metadata":{\n"\xef\xbf\xbd\xef\xbf\xbd":1},'* ]]
}

@test "the listing is the same for every order of tensors" {
	for f in model-ok-llada model-ok-other-order; do
		gguf-inspect "$files/$f.gguf" | grep '^tensor [a-z]*[._]' |
			sed 's/ offset .*//' >"$f"
	done
	same model-ok-llada model-ok-other-order
}

@test "long values are shortened, --full shows them" {
	works gguf-inspect "$models/pocket-llada-q4_k_m.gguf"
	grep -Fx 'key tokenizer.ggml.token_type: i32[1024] [1, 1, 1, 1, 1, 1, 1, 1, ...]' <<<"$output"
	grep '^key tokenizer.chat_template: string "{% for .*"\.\.\.$' <<<"$output"
	[ "$(awk '{ if (length($0) > 200) n++ } END { print n + 0 }' <<<"$output")" -eq 0 ]
	works gguf-inspect --full "$models/pocket-llada-q4_k_m.gguf"
	[ "$(grep -c '\.\.\.$' <<<"$output")" -eq 0 ]
	grep '^key tokenizer.ggml.tokens: .*"<|mdm_mask|>", .*"\]$' <<<"$output"
}

@test "the facts about the demo models" {
	works gguf-inspect "$models/pocket-llada-q4_k_m.gguf"
	diff - <(grep -v '^key\|^file\|^tensor [a-z]*[._]' <<<"$output") <<-'END'
	version: 3
	bytes: 3418368
	alignment: 32
	architecture: llada
	quantization: Q4_K_M
	tensors: 57
	parameters: 5639424
	tensor bytes: 3386368
	bits per weight: 4.8038
	type F32: tensors 13 parameters 3328 bytes 13312
	type Q4_K: tensors 39 parameters 4849664 bytes 2727936
	type Q6_K: tensors 5 parameters 786432 bytes 645120
	END
	# the same tensors in one file and in two
	for f in q8_0 f16-00001-of-00002; do
		gguf-inspect "$models/pocket-llada-$f.gguf" |
			sed -n 's/^tensor \([a-z].*\): [A-Z].* \(\[.*\]\) .*/\1 \2/p' >"$f"
	done
	same q8_0 f16-00001-of-00002
}

@test "--get prints one value" {
	local m=$files/ok-all-types.gguf
	works gguf-inspect --get t.str "$m"
	[ "$output" = 'hé 中' ]
	works gguf-inspect --get a.str --model "$m"
	[ "$output" = x ]
	[ "$(gguf-inspect --get a.str "$m" | od -An -c | tr -d ' ')" = 'x\n\n' ]
	[ "$(gguf-inspect --get e.arr "$m" | wc -c)" -eq 0 ]
	[ "$(gguf-inspect --get e.str "$m" | wc -c)" -eq 1 ]
	works gguf-inspect --get t.u64 "$m"
	[ "$output" = 18446744073709551615 ]
	works gguf-inspect --get t.bool "$m"
	[ "$output" = true ]
	works gguf-inspect --get a.f32 --json "$m"
	[ "$output" = '[1,"nan"]' ]
	works gguf-inspect --get t.str --json "$m"
	[ "$output" = '"hé 中"' ]
	fails 1 "gguf-inspect: ERROR: $m: no such metadata key: t.none" \
		gguf-inspect --get t.none "$m"
}

@test "--tensor writes the numbers of the file" {
	local m=$models/pocket-llada-q8_0.gguf at
	works gguf-inspect --tensor output_norm.weight --output n.npy "$m"
	[ -z "$output" ]
	at=$(offset "$m" output_norm.weight)
	tail -c +$((at + 1)) "$m" | head -c 1024 >raw
	tail -c 1024 n.npy >data
	same raw data
	[ $(($(wc -c <n.npy) % 64)) -eq 0 ]
	head -n 1 n.npy | grep -a "'descr': '<f4'.*'shape': (256,)"

	gguf-inspect --tensor blk.0.ffn_up.weight --output - "$m" | cat >up.npy
	gguf-inspect --tensor blk.0.ffn_up.weight --output up2.npy "$m"
	same up.npy up2.npy
	# [256, 768] in the file: the row is the fastest dimension
	head -n 1 up.npy | grep -a "'shape': (768, 256)"
	[ "$(wc -c <up.npy)" -eq $((128 + 768 * 256 * 4)) ]
	# first value: the scale of the first block times its first quant
	at=$(offset "$m" blk.0.ffn_up.weight)
	read -r h < <(od -An -tu2 -j "$at" -N 2 "$m")
	read -r q < <(od -An -td1 -j $((at + 2)) -N 1 "$m")
	read -r got < <(od -An -tf4 -j 128 -N 4 up.npy)
	awk -v h="$h" -v q="$q" -v got="$got" 'BEGIN {
		want = q * (1024 + h % 1024) * 2 ^ (int(h / 1024) % 32 - 25)
		if (h >= 32768) want = -want
		d = got - want
		exit !(want != 0 && d * d <= 1e-12 * want * want)
	}'
}

@test "--tensor of a scalar, of a split model" {
	works gguf-inspect --tensor a --output a.npy "$files/ok-scalar.gguf"
	head -n 1 a.npy | grep -a "'shape': ()"
	[ "$(wc -c <a.npy)" -eq $((64 + 4)) ] || [ "$(wc -c <a.npy)" -eq $((128 + 4)) ]
	for f in split-ok-00001-of-00002 model-ok-llada; do
		gguf-inspect --tensor output.weight --output $f "$files/$f.gguf"
	done
	same split-ok-00001-of-00002 model-ok-llada
}

@test "--tensor: what cannot be decoded leaves no file" {
	local f=$files/model-type-iq2.gguf
	fails 1 "gguf-inspect: ERROR: $f: unsupported GGUF tensor type: IQ2_XXS (tensor blk.0.attn_q.weight)" \
		gguf-inspect --tensor blk.0.attn_q.weight --output x.npy "$f"
	fails 1 "gguf-inspect: ERROR: $f: no such tensor: nothing" \
		gguf-inspect --tensor nothing --output x.npy "$f"
	f=$files/model-data-missing.gguf
	fails 1 "gguf-inspect: ERROR: $f: tensor output.weight: data ends at byte 3776, beyond the file's 2300" \
		gguf-inspect --tensor output.weight --output x.npy "$f"
	[ -z "$(ls -A)" ]
	f=$files/model-ok-llada.gguf
	fails 1 "gguf-inspect: ERROR: cannot write '/dev/full': No space left on device" \
		gguf-inspect --tensor output.weight --output /dev/full "$f"
	fails 1 "gguf-inspect: ERROR: cannot create 'no/x.npy': No such file or directory" \
		gguf-inspect --tensor output.weight --output no/x.npy "$f"
	[ -z "$(ls -A)" ]
	cp "$f" m.gguf
	ln -s m.gguf link
	fails 1 "gguf-inspect: ERROR: link: the output is the input" \
		gguf-inspect --tensor output.weight --output link m.gguf
	same m.gguf "$f"
}

@test "a file without its data is listed with a warning, --check fails" {
	local f=$files/model-data-cut-1.gguf
	run --separate-stderr gguf-inspect "$f"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "file: $f" ]
	[ "$stderr" = "gguf-inspect: warning: $f: the file is incomplete: data of tensor output.weight ends at byte 3776 of 3775" ]
	fails 1 "gguf-inspect: ERROR: $f: tensor output.weight: data ends at byte 3776, beyond the file's 3775" \
		gguf-inspect --check "$f"
}

@test "--check is silent about sound files" {
	for f in "$models"/pocket-llada-{q4_k_m,q8_0,f16-00001-of-00002}.gguf; do
		works gguf-inspect --check "$f"
		[ -z "$output" ]
	done
}

@test "--check names every tensor with a scale or value that is not finite" {
	local f=q.gguf k n
	cp "$models/pocket-llada-q4_k_m.gguf" $f
	k=$(($(offset $f blk.1.attn_q.weight) + 3 * 144 + 2))
	n=$(($(offset $f output_norm.weight) + 8))
	plant $f $k 00 fc # -inf, dmin of block 3
	plant $f $n ff ff ff 7f
	run --separate-stderr gguf-inspect --check $f
	[ "$status" -eq 1 ]
	[ -z "$output" ]
	sort <<<"$stderr" >got
	diff - got <<-END
	gguf-inspect: ERROR: $f: tensor blk.1.attn_q.weight: 1 of 256 blocks have scales or offsets that are not finite, the first at byte $((k - 2))
	gguf-inspect: ERROR: $f: tensor output_norm.weight: 1 of 256 elements have values that are not finite, the first at byte $n
	END
	# the listing reads no data
	works gguf-inspect $f
}

@test "standard output: a full disk is an error, a closed pipe is not" {
	for o in "" --json --full "--get t.str"; do
		# shellcheck disable=SC2086 # zero or more words
		run --separate-stderr sh -c 'gguf-inspect "$@" >/dev/full' sh $o \
			"$files/ok-all-types.gguf"
		[ "$status" -eq 1 ]
		[ "$stderr" = "gguf-inspect: ERROR: cannot write standard output: No space left on device" ]
	done
	run --separate-stderr bash -c 'gguf-inspect --full "$1" | head -c 1
		exit "${PIPESTATUS[0]}"' bash "$models/pocket-llada-q8_0.gguf"
	[ "$status" -eq 141 ] || [ "$status" -eq 0 ]
	[ "$output" = f ]
	[ -z "$stderr" ]
}

@test "usage errors" {
	local f=$files/ok-v3.gguf
	while IFS='|' read -r message arguments; do
		# shellcheck disable=SC2086 # several words
		fails 2 "gguf-inspect: ERROR: $message"$'\n'"$usage" \
			gguf-inspect $arguments
	done <<-END
	no file is given|
	no file is given|--json
	unexpected argument 'b'|$f b
	--model and FILE exclude each other|--model $f $f
	--get, --check and --tensor exclude each other|--get x --check $f
	--tensor and --output belong together|--tensor a $f
	--tensor and --output belong together|--output a $f
	--json goes with the listing and --get only|--json --check $f
	--full goes with the listing only|--full --json $f
	END
	works gguf-inspect --help
	[ "${lines[0]}" = "${usage#gguf-inspect: }" ]
	works gguf-inspect --version
}
