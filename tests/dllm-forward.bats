#!/usr/bin/env bats
# dllm-forward: options, arrays, dumps, the protocol, and every refusal.
# shellcheck disable=SC2034,SC2154,SC2016 # set for bats, set by run, literal

load helpers
BATS_TEST_TIMEOUT=60

usage='dllm-forward: usage: dllm-forward [options] --model PATH'

setup() {
	llada=$golden/models/tiny-llada-q4km.gguf
	dream=$golden/models/tiny-dream-q4km.gguf
	# run leaves files of its own in the folder above
	mkdir "$BATS_TEST_TMPDIR/work"
	cd "$BATS_TEST_TMPDIR/work" || return 1
	printf '257 72 101 108 108 111 32 259 259 259 259 259\n' >hello
}

# with INPUT COMMAND...: run a command on some bytes of input.
with() {
	local input=$1
	shift
	# shellcheck disable=SC2059 # the format is the data
	printf "$input" | "$@"
}

# shape FILE: the shape that a .npy file states.
shape() {
	head -c 128 "$1" | sed -n "s/.*'shape': (\([^)]*\)).*/\1/p"
}

# required OPTION...: $REPLY is what a model is said to need, in 0.1 GB
required() {
	run --separate-stderr dllm-forward --threads 1 "$@" <hello
	[ "$status" -eq 1 ]
	[ -z "$output" ]
	# behind a warning that the model's context is shorter
	[[ ${stderr##*$'\n'} =~ ^'dllm-forward: ERROR: model requires '([0-9]+)'.'([0-9])' GB but available memory is '[0-9]+'.'[0-9]' GB'$ ]]
	REPLY=${BASH_REMATCH[1]}${BASH_REMATCH[2]}
}

@test "help and version" {
	works dllm-forward --help
	[[ $output == 'usage: dllm-forward [options] --model PATH'* ]]
	works dllm-forward --version
	[[ $output == 'dllm-forward (dllm) '* ]]
}

@test "wrong command lines exit 2 and touch nothing" {
	wrong() {
		fails 2 "dllm-forward: ERROR: $1
$usage" "${@:2}"
	}
	wrong '--model is required' dllm-forward
	wrong "unknown option '--modle' (did you mean --model?)" \
		dllm-forward --modle x
	wrong "unexpected argument 'x'" dllm-forward --model "$llada" x
	wrong "--threads '0': not in 1..1024" \
		dllm-forward --model x --threads 0
	wrong "--max-length '1048577': not in 1..1048576" \
		dllm-forward --model x --max-length 1048577
	wrong "--device 'tpu': not one of auto, cpu, gpu, cuda" \
		dllm-forward --model x --device tpu
	wrong "--activations 'q4': not one of q8, f32" \
		dllm-forward --model x --activations q4
	wrong "--rows: bad range of rows '3:0'" \
		dllm-forward --model x --rows 3:0
	wrong '--rows: with --serve every request names its rows' \
		dllm-forward --model x --serve --rows 1:1
	for o in --serve '--rows 1:1' '--logits x'; do
		# shellcheck disable=SC2086 # two words
		wrong '--dump writes all rows of one token line: no --serve, --rows or --logits' \
			dllm-forward --model x --dump d $o
	done
	DLLM_LOGITS_FD=1 wrong \
		'a sampler has started this (DLLM_LOGITS_FD is set) and needs --serve' \
		dllm-forward --model x
	DLLM_LOGITS_FD=1 wrong \
		'--logits: DLLM_LOGITS_FD names a file already' \
		dllm-forward --model x --serve --logits y
	DLLM_CPU=sse9 wrong "DLLM_CPU: 'sse9': not one of scalar, avx2, avxvnni, avx512vnni, neon, dotprod, i8mm" \
		dllm-forward --model x
	[ ! -e d ]
	[ ! -e x ]
	[ ! -e y ]
}

@test "a kernel group that is not there is named" {
	if [ "$(uname -m)" = x86_64 ]; then missing=neon; else missing=avx2; fi
	DLLM_CPU=$missing fails 1 \
		"dllm-forward: ERROR: DLLM_CPU: '$missing': not in this build" \
		dllm-forward --model "$llada"
}

@test "devices: this tool has the CPU only" {
	for d in gpu cuda; do
		fails 1 'dllm-forward: ERROR: no GPU found: this is the CPU tool (run with --device cpu)' \
			dllm-forward --model "$llada" --device "$d"
	done
	for d in auto cpu; do
		works dllm-forward --model "$llada" --device "$d" \
			--logits out.npy <hello
		[ "$(shape out.npy)" = '12, 272' ]
	done
}

@test "one array for each token line, in order" {
	printf '257 72\n' >a
	printf '1\n' >b
	cat a b hello | dllm-forward --model "$llada" >all
	for f in a b hello; do
		dllm-forward --model "$llada" <"$f"
	done >each
	same all each
	cat a b hello | dllm-forward --model "$llada" --logits file
	same all file
	dllm-forward --model "$llada" <hello >one
	[ "$(shape one)" = '12, 272' ]
}

@test "an empty line gives an array of no rows, unless rows are named" {
	works with '\n' dllm-forward --model "$llada" --logits out
	[ "$(shape out)" = '0, 272' ]
	[ "$(stat -c %s out)" -eq 128 ]
	fails 1 'dllm-forward: ERROR: standard input: line 1: the sequence is empty' \
		with '\n' dllm-forward --model "$llada" --rows 0:1
}

@test "--rows picks rows of the whole" {
	dllm-forward --model "$llada" <hello | tail -c +129 >all
	dllm-forward --model "$llada" --rows 2:3,9,11:1 <hello >some
	[ "$(shape some)" = '5, 272' ]
	{
		tail -c +$((2 * 1088 + 1)) all | head -c $((3 * 1088))
		tail -c +$((9 * 1088 + 1)) all | head -c 1088
		tail -c +$((11 * 1088 + 1)) all | head -c 1088
	} >want
	tail -c +129 some >got
	same want got
}

@test "a shifted model predicts from the row before" {
	dllm-forward --model "$dream" <hello >all
	[ "$(shape all)" = '11, 272' ]
	mkdir d
	dllm-forward --model "$dream" --dump d <hello
	[ "$(shape d/logits.npy)" = '12, 272' ]
	tail -c +129 d/logits.npy | head -c $((11 * 1088)) >want
	tail -c +129 all >got
	same want got
	works with '257\n' dllm-forward --model "$dream" --logits one
	[ "$(shape one)" = '0, 272' ]
	fails 1 'dllm-forward: ERROR: standard input: line 1: position 0 cannot be predicted by a model that predicts from the row before' \
		dllm-forward --model "$dream" --rows 0:2 <hello
}

@test "threads and kernels change no bit" {
	dllm-forward --model "$dream" --threads 1 <hello >want
	for t in 2 7; do
		dllm-forward --model "$dream" --threads "$t" <hello >got
		same want got
	done
	DLLM_CPU=scalar dllm-forward --model "$dream" <hello >got
	same want got
}

@test "--activations f32 is another arithmetic, but not of an F32 model" {
	dllm-forward --model "$llada" <hello >int8
	dllm-forward --model "$llada" --activations f32 <hello >exact
	run ! cmp -s int8 exact
	tiny-model --arch llada --output f32.gguf
	dllm-forward --model f32.gguf <hello >int8
	dllm-forward --model f32.gguf --activations f32 <hello >exact
	same int8 exact
}

@test "what is wrong with a token line" {
	wrong() {
		fails 1 "dllm-forward: ERROR: $1" with "$2" \
			dllm-forward --model "$llada" "${@:3}"
	}
	wrong 'standard input ended before a token line' ''
	wrong 'standard input ended inside a token line' '1 2'
	wrong 'standard input: line 1: byte 3: not a token id' '1 x\n'
	wrong 'standard input: line 1: token 272 at position 1 is outside the vocabulary of 272' '1 272\n'
	wrong 'standard input: line 1: the sequence has 3 tokens, more than the 2 of --max-length' \
		'1 2 3\n' --max-length 2
	wrong 'standard input: line 1: rows 1:2 are outside the sequence of 2 tokens' \
		'1 2\n' --rows 1:2
	# what came before is out, what is wrong is not
	run --separate-stderr with '1\n999\n' dllm-forward --model "$llada"
	[ "$status" -eq 1 ]
	with '1\n' dllm-forward --model "$llada" >want
	with '1\n999\n' dllm-forward --model "$llada" >got 2>/dev/null || true
	same want got
	with '1\n999\n' dllm-forward --model "$llada" --logits f 2>/dev/null || true
	[ ! -e f ]
}

@test "--logits - is standard output" {
	dllm-forward --model "$llada" <hello >a.npy
	dllm-forward --model "$llada" --logits - <hello >b.npy
	same a.npy b.npy
	fails 2 "dllm-forward: ERROR: --logits -: with --serve standard output holds replies
$usage" dllm-forward --model "$llada" --serve --logits -
	[ ! -e ./- ]
}

@test "where the output cannot go" {
	fails 1 'dllm-forward: ERROR: cannot write standard output: No space left on device' \
		sh -c 'dllm-forward --model "$1" <hello >/dev/full' x "$llada"
	fails 1 "dllm-forward: ERROR: cannot write '/dev/full': No space left on device" \
		dllm-forward --model "$llada" --logits /dev/full <hello
	fails 1 "dllm-forward: ERROR: cannot create 'no/where': No such file or directory" \
		dllm-forward --model "$llada" --logits no/where <hello
	cp "$llada" m.gguf
	fails 1 "dllm-forward: ERROR: m.gguf: the output is the input" \
		dllm-forward --model m.gguf --logits m.gguf <hello
	fails 1 "dllm-forward: ERROR: m.gguf: the output is the input" \
		dllm-forward --model m.gguf --serve --logits m.gguf <hello
	same m.gguf "$llada"
}

@test "arrays never go to a terminal" {
	cat >run.sh <<-END
		dllm-forward --model '$llada' <hello
	END
	run script -qec 'sh run.sh' /dev/null </dev/null
	[ "$status" -eq 2 ]
	[ "${output//$'\r'/}" = "dllm-forward: ERROR: standard output is a terminal: arrays go to a pipe or to --logits PATH
$usage" ]
}

@test "models that must be refused are, for the reason in the table" {
	cd "$golden/gguf"
	n=0
	while IFS=$'\t' read -r file message; do
		fails 1 "dllm-forward: ERROR: $message" \
			with '1 2\n' dllm-forward --model "$file"
		n=$((n + 1))
	done <"$top/tests/dllm-forward.messages"
	[ "$n" -eq "$(awk -F'\t' '$4 == "model" && $2 == "reject"' \
		expected.tsv | wc -l)" ]
}

@test "models that must be accepted are" {
	n=0
	while IFS=$'\t' read -r file verdict _ level _; do
		[ "$level" = model ] && [ "$verdict" = accept ] || continue
		works with '1 2 3\n' dllm-forward \
			--model "$golden/gguf/$file" --logits out.npy
		[[ $(shape out.npy) == [23]', 20' ]]
		n=$((n + 1))
	done <"$golden/gguf/expected.tsv"
	[ "$n" -gt 7 ]
}

@test "files that are no models" {
	fails 1 "dllm-forward: ERROR: cannot open 'nope': No such file or directory" \
		dllm-forward --model nope
	head -c 500000 "$llada" >cut.gguf
	run --separate-stderr dllm-forward --model cut.gguf <hello
	[ "$status" -eq 1 ]
	[ -z "$output" ]
	[[ $stderr == 'dllm-forward: ERROR: cut.gguf: the file is incomplete: '* ]]
	tiny-model --name-arch llama --output x.gguf
	fails 1 'dllm-forward: ERROR: x.gguf: unsupported model architecture: llama (supported: llada, dream)' \
		dllm-forward --model x.gguf
}

@test "a model that is cut while in use is named, whichever thread meets the end" {
	half=$(($(stat -c %s "$llada") / 2))
	for size in 4096 $half $half $half; do
		cp "$llada" m.gguf
		rm -f in out
		mkfifo in
		dllm-forward --serve --model m.gguf --threads 4 \
			<in >out 2>err 3>&- &
		exec 7>in
		wait_until 20 test -s out
		truncate -s "$size" m.gguf
		echo 'forward 1 rows=0:2 want=stats : 5 6' >&7
		wait_until 20 gone $!
		exec 7>&-
		run wait $!
		[ "$status" -eq 1 ]
		[ "$(cat err)" = 'dllm-forward: ERROR: m.gguf: became shorter while in use, or cannot be read' ]
		[ "$(wc -l <out)" = 1 ]
	done
}

@test "no more threads than CPUs that the process may use" {
	command -v taskset >/dev/null || skip 'taskset(1) is missing'
	cpu=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
	works taskset -c "$cpu" dllm-forward --serve --model "$llada" </dev/null
	[[ $output = *' threads=1 '* ]]
	works taskset -c "$cpu" dllm-forward --serve --model "$llada" \
		--threads 2 </dev/null
	[[ $output = *' threads=2 '* ]]
}

@test "a model that memory cannot hold" {
	tiny-model --huge --output huge.gguf
	run --separate-stderr dllm-forward --model huge.gguf <hello
	[ "$status" -eq 1 ]
	[ -z "$output" ]
	[[ $stderr =~ ^'dllm-forward: ERROR: model requires '[0-9]+'.'[0-9]' GB but available memory is '[0-9]+'.'[0-9]' GB'$ ]]
	works dllm-forward --model huge.gguf --no-memory-check --serve \
		</dev/null
	[[ $output == 'dllm-forward 1 arch=llada '* ]]
	rm huge.gguf
}

@test "the logits that are held count as memory" {
	local least args=(--model huge.gguf --max-length 1048576)
	tiny-model --huge --output huge.gguf
	required "${args[@]}" --serve
	least=$REPLY
	required "${args[@]}" --rows 0:1
	[ "$REPLY" -eq "$least" ]
	# 1048576 rows of 272 logits are 1.14 GB
	for o in '' '--rows 0:1048576' '--dump d' '--serve --logits x'; do
		# shellcheck disable=SC2086 # several words
		required "${args[@]}" $o
		[ $((REPLY - least)) -eq 11 ] || [ $((REPLY - least)) -eq 12 ]
	done
	rm huge.gguf
}

@test "numbers that are not finite are errors, wherever they arise" {
	while read -r tensor stage position; do
		tiny-model --nan "$tensor" --output nan.gguf
		for o in '--activations q8' '--activations f32' \
			'--threads 3'; do
			# shellcheck disable=SC2086 # two words
			fails 1 "dllm-forward: ERROR: standard input: line 1: stage $stage, position $position: a number is not finite or above 2^100" \
				with '1 271\n' dllm-forward --model nan.gguf $o
		done
	done <<-END
		token_embd.weight embd 1
		blk.0.attn_norm.weight 00.attn_norm 0
		blk.0.attn_q.weight 00.q 0
		blk.0.attn_k.weight 00.k 0
		blk.0.attn_v.weight 00.v 0
		blk.0.attn_output.weight 00.attn_res 0
		blk.0.ffn_norm.weight 00.ffn_norm 0
		blk.1.ffn_gate.weight 01.ffn_act 0
		blk.0.ffn_down.weight 00.out 0
		blk.1.ffn_down.weight 01.out 0
		output_norm.weight norm 0
		output.weight logits 0
	END
}

@test "--dump writes every stage" {
	works dllm-forward --model "$llada" --dump d <hello
	for s in embd norm logits; do
		printf '%s.npy\n' "$s"
	done >want
	for s in attn_norm q k v attn attn_out attn_res ffn_norm ffn_act \
		ffn_out out; do
		printf '00.%s.npy\n01.%s.npy\n' "$s" "$s"
	done >>want
	LC_ALL=C sort want >sorted
	(cd d && find . -type f | sed 's|./||' | LC_ALL=C sort) >got
	same sorted got
	[ "$(shape d/00.ffn_act.npy)" = '12, 512' ]
	[ "$(shape d/logits.npy)" = '12, 272' ]
	dllm-forward --model "$llada" <hello >logits
	same logits d/logits.npy
	fails 1 "dllm-forward: ERROR: --dump 'd': the folder is not empty" \
		dllm-forward --model "$llada" --dump d <hello
	mkdir empty
	works dllm-forward --model "$llada" --dump empty <hello
	diff -r d empty
	fails 1 'dllm-forward: ERROR: --dump takes one token line' \
		with '1\n2\n' dllm-forward --model "$llada" --dump e
	fails 1 "dllm-forward: ERROR: cannot make 'no/e': No such file or directory" \
		dllm-forward --model "$llada" --dump no/e <hello
	[ ! -e e ]
}

@test "--dump of a run that fails keeps the stages before" {
	tiny-model --nan blk.1.attn_norm.weight --output nan.gguf
	fails 1 'dllm-forward: ERROR: standard input: line 1: stage 01.attn_norm, position 0: a number is not finite or above 2^100' \
		dllm-forward --model nan.gguf --dump d <hello
	[ -e d/00.ffn_out.npy ]
	[ ! -e d/01.q.npy ]
	[ ! -e d/logits.npy ]
}

@test "--verbose reports model, device and every layer" {
	run --separate-stderr dllm-forward --model "$llada" --verbose \
		--threads 2 --logits x <hello
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	sed 's/[0-9.]* ms/T ms/; s/[a-z0-9]* kernels/K kernels/' <<<"$stderr" >got
	cat >want <<-END
		dllm-forward: model: llada, Q4_K_M, 2 layers of width 256, vocabulary 272, 0.9 MB
		dllm-forward: device: cpu, K kernels, 2 threads, opened in T ms
		dllm-forward: request 0: 12 tokens, 12 rows, T ms
		dllm-forward:   embedding: T ms
		dllm-forward:   layer 0: T ms
		dllm-forward:   layer 1: T ms
		dllm-forward:   norm and head: T ms
	END
	same want got
}

@test "warnings: unused tensors, more than the context" {
	run --separate-stderr with '1\n' dllm-forward --model "$llada" \
		--max-length 513 --logits x
	[ "$status" -eq 0 ]
	[ "$stderr" = "dllm-forward: warning: --max-length 513 is above the model's context length of 512" ]
}

# serve INPUT OPTION...: the replies to some request lines, without times.
serve() {
	local input=$1
	shift
	# shellcheck disable=SC2059 # the format is the data
	printf "$input" | dllm-forward --serve --model "$llada" "$@" |
		sed 's/ ms=[0-9.]*$/ ms=T/'
}

@test "serve: the greeting" {
	works dllm-forward --serve --model "$llada" --threads 3 </dev/null
	[[ $output == 'dllm-forward 1 arch=llada vocab=272 mask=259 eos=258 ctx=512 device=cpu kernel='*' threads=3 first=0 want=logits,stats quant=Q4_K_M model=tiny-llada-q4km.gguf' ]]
	works dllm-forward --serve --model "$dream" --max-length 99 </dev/null
	[[ $output == 'dllm-forward 1 arch=dream vocab=272 mask=259 eos=258 ctx=99 '*' first=1 '* ]]
}

@test "serve: requests by hand, logits into a named file" {
	works serve 'forward 7 rows=2:3,9:1 : 257 72 101 108 108 111 32 259 259 259 259 259\n' --logits out.npy
	[ "${lines[1]}" = 'ok 7 rows=4 bytes=4480 ms=T' ]
	dllm-forward --model "$llada" --rows 2:3,9:1 <hello >want
	same want out.npy
}

@test "serve: logits into an inherited file, whose size never changes" {
	head -c 20000 /dev/zero >shared
	DLLM_LOGITS_FD=9 works serve 'forward 1 rows=9:1 : 257 72 101 108 108 111 32 259 259 259 259 259\nforward 2 rows=2:3 : 257 72 101 108 108 111 32 259 259 259 259 259\n' 9<>shared
	[ "${lines[1]}" = 'ok 1 rows=1 bytes=5184 ms=T' ]
	[ "${lines[2]}" = 'ok 2 rows=3 bytes=7360 ms=T' ]
	[ "$(stat -c %s shared)" -eq 20000 ]
	[ "$(shape shared)" = '3, 272' ]
	dllm-forward --model "$llada" --rows 2:3 <hello | tail -c +129 >want
	tail -c +4097 shared | head -c $((3 * 1088)) >got
	same want got
	DLLM_LOGITS_FD=9 works serve 'forward 3 rows=0:15 : 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n' 9<>shared
	[ "${lines[1]}" = 'error 3 the shared file has 20000 bytes, 20416 are needed' ]
	[ "$(stat -c %s shared)" -eq 20000 ]
}

@test "serve: a descriptor that is none" {
	for fd in 77 x ''; do
		DLLM_LOGITS_FD=$fd fails 1 \
			"dllm-forward: ERROR: DLLM_LOGITS_FD '$fd': not an open file" \
			dllm-forward --serve --model "$llada"
	done
}

@test "serve: statistics, the same for any number of threads" {
	local r='forward 1 rows=2:2 want=stats algorithm=llada : 257 72 101 108 259\n'
	works serve "$r" --threads 1
	one=$output
	[ "${lines[1]}" = 'ok 1 rows=2 ms=T' ]
	[[ ${lines[2]} =~ ^'row 2 id='[0-9]+' logit='-?0x[01].*' p=0x'.*' margin=0x'.*' negent=' ]]
	[[ ${lines[3]} == 'row 3 id='* ]]
	[ "${#lines[@]}" -eq 4 ]
	works serve "$r" --threads 3
	[ "${one#*ok}" = "${output#*ok}" ]
}

@test "serve: what is wrong with a request is an error reply" {
	local good='forward 9 rows=1:1 want=stats algorithm=llada : 1 2'
	while IFS='|' read -r request reply; do
		works serve "$request\\n$good\\n"
		[ "${lines[1]}" = "$reply" ]
		[ "${lines[2]}" = 'ok 9 rows=1 ms=T' ]
	done <<-END
		forward 1 rows=0:1 : 1 2|error 1 no place for logits: neither DLLM_LOGITS_FD nor --logits was given
		forward 1 rows=0:1 want=stats : |error 1 more rows than the 0 tokens
		forward 1 rows=2:1 want=stats : 1 2|error 1 rows 2:1 are outside the sequence of 2 tokens
		forward 1 rows=0:1 want=stats : 1 272|error 1 token 272 at position 1 is outside the vocabulary of 272
		forward 1 rows=0:1 want=stats ban=272 : 1 2|error 1 ban=272 is outside the vocabulary of 272
		forward 1 rows=0:1 want=stats demote=272 : 1 2|error 1 demote=272 is outside the vocabulary of 272
		forward 1 rows=0:1 colour=red : 1 2|error 1 unknown key in the request: 'colour=red'
		forward 1 rows=1:1,0:1 : 1 2|error 1 rows must ascend: '0:1'
		forward 1 : 1 2|error 1 no rows= in the request
		hello|error 0 a request begins with 'forward SEQ'
	END
	printf -v long ' 1%.0s' $(seq 513)
	works serve "forward 4 rows=0:1 want=stats :$long\\n$good\\n"
	[ "${lines[1]}" = 'error 4 the sequence has 513 tokens, more than the 512 of --max-length' ]
	[ "${lines[2]}" = 'ok 9 rows=1 ms=T' ]
}

@test "serve: numbers that are not finite are an error reply" {
	tiny-model --nan output.weight --output nan.gguf
	printf 'forward 1 rows=1:1 want=stats : 1 2\n' |
		dllm-forward --serve --model nan.gguf >got
	[ "$(tail -n 1 got)" = 'error 1 stage logits, position 1: a number is not finite or above 2^100' ]
}

@test "serve: input that ends inside a request" {
	run --separate-stderr with 'forward 1 rows=0:1' \
		dllm-forward --serve --model "$llada"
	[ "$status" -eq 1 ]
	[ "$stderr" = 'dllm-forward: ERROR: standard input ended inside a request' ]
}

@test "serve: a reader that went away ends it silently" {
	mkfifo request
	dllm-forward --serve --model "$llada" <request 2>err 3>&- |
		head -n 1 >greeting 3>&- &
	job=$!
	exec 5>request
	wait_until 10 test -s greeting
	# shellcheck disable=SC2016 # for the inner shell
	wait_until 10 sh -c 'trap "" PIPE
		! echo "forward 1 rows=0:1 want=stats : 1" >&5' 2>/dev/null
	exec 5>&-
	wait "$job"
	[ ! -s err ]
}
