#!/usr/bin/env bats
# dllm-sample with a stand-in for the model.
# shellcheck disable=SC2154,SC2034 # set by run, or for bats

load helpers
BATS_TEST_TIMEOUT=200

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# value KEY: $REPLY is the number or word of that name in $json
value() {
	local pattern="\"$1\": \"?([^,\"
]*)"
	REPLY=
	[[ $json =~ $pattern ]] && REPLY=${BASH_REMATCH[1]}
	[ "$REPLY" != null ] || REPLY=
}

# canvases TRACE: the canvas of every line that has one, as token lines
canvases() {
	sed -n '/"canvas"/ { s/.*"canvas":\[\([0-9,]*\)\].*/\1/; y/,/ /; p; }' \
		"$1"
}

# case_options: those of the case in $json, in the array args
case_options() {
	local pair
	args=(--temperature 0 --prompt-masks reference --canvas)
	for pair in steps=steps max-tokens=gen_length block-length=block_length \
		cfg-scale=cfg_scale top-p=top_p top-k=top_k algorithm=alg; do
		value "${pair#*=}"
		[ -z "$REPLY" ] || args+=("--${pair%=*}" "$REPLY")
	done
	value allow_mask
	[ "$REPLY" = false ] || args+=(--allow-mask)
	value eot
	[ -z "$REPLY" ] || args+=(--demote-eos)
}

# stripped TRACE: without times
stripped() {
	sed 's/"ms":[0-9.]*/"ms":0/' "$1"
}

@test "dllm-sample: recorded decisions, live, by statistics and by logits" {
	local count=0 canvas left mode
	for dir in "$golden"/sampler/*/; do
		json=$(<"$dir/case.json")
		case_options
		value gen_length
		read -r -a canvas <"$dir/canvas.txt"
		echo "${canvas[@]:0:${#canvas[@]}-REPLY}" >in
		value masks_left
		left=$REPLY
		for mode in '' --no-stats; do
			dllm-sample "${args[@]}" --trace trace -- \
				fake-forward --replay "$dir" $mode \
				<in >out 2>err
			canvases trace | cmp - "$dir/canvas.txt"
			[ "$(<out)" = "$(tail -n 1 "$dir/canvas.txt")" ]
			[ "$left" = 0 ] || echo "dllm-sample: warning: line 1:\
 $left masks are left" >want
			[ "$left" != 0 ] || : >want
			cmp want err
			stripped trace >"trace$mode"
		done
		stripped trace | cmp - trace--no-stats
		count=$((count + 1))
	done
	[ "$count" -eq 17 ]
}

# One line an option set; the step-by-step loop and both routes must agree.
option_sets() {
	cat <<-'END'
	--seed 1
	--seed 1 --no-early-stop
	--seed 2 --temperature 0.8 --block-length 4
	--seed 3 --temperature 0.5 --cfg-scale 1.5
	--seed 4 --remasking random --temperature 2 --block-length 5
	--seed 5 --algorithm entropy --temperature 0.4 --top-p 0.9
	--seed 6 --algorithm origin --temperature 1
	--seed 7 --algorithm maskgit_plus --temperature 0.7 --alg-temp 0.5
	--seed 8 --algorithm topk_margin --top-k 3 --temperature 0.7 --greedy
	--seed 9 --demote-eos --temperature 1
	--seed 18446744073709551615 --no-eos --temperature 1
	--seed 11 --allow-mask --temperature 3
	--seed 12 --prompt-masks reference --block-length 6
	END
}

@test "dllm-sample: one process per step equals the live loop" {
	local model=(--vocab 12 --mask 11 --seed 5) steps=5 step plan uncond now
	fake-forward "${model[@]}" </dev/null >greeting
	echo 5 11 6 7 >in
	while read -r -a args; do
		dllm-sample "${args[@]}" --max-tokens 9 --steps $steps \
			--trace trace -- fake-forward "${model[@]}" \
			<in >out 2>/dev/null
		mapfile -t live < <(canvases trace)
		now='5 11 6 7 11 11 11 11 11 11 11 11 11'
		[ "$now" = "${live[0]}" ]
		args+=(--steps "$steps" --prompt-length 4 --greeting greeting)
		for ((step = 0; step < steps; step++)); do
			mapfile -t plan < <(dllm-sample "${args[@]}" \
				--step $step --plan <<<"$now")
			[ ${#plan[@]} -gt 0 ]
			if [ -n "${plan[0]}" ]; then
				fake-forward "${model[@]}" --rows "${plan[0]}" \
					--logits c.npy <<<"$now"
				uncond=()
				[ ${#plan[@]} -eq 1 ] || {
					uncond=(--uncond u.npy)
					fake-forward "${model[@]}" --logits u.npy \
						--rows "${plan[0]}" <<<"${plan[1]}"
				}
				now=$(dllm-sample "${args[@]}" --step $step \
					--logits c.npy "${uncond[@]}" <<<"$now")
			fi
			# a live loop that ended early changes nothing more
			[ "$now" = "${live[step + 1]-${live[-1]}}" ]
		done
	done < <(option_sets)
}

@test "dllm-sample: statistics and logits give the same bytes" {
	echo 5 11 6 7 >in
	while read -r -a args; do
		for mode in stats logits; do
			only=
			[ $mode = stats ] || only=--no-stats
			dllm-sample "${args[@]}" --max-tokens 24 --trace trace \
				-- fake-forward --vocab 12 --mask 11 $only \
				<in >out.$mode 2>/dev/null
			stripped trace >trace.$mode
		done
		same out.stats out.logits
		same trace.stats trace.logits
	done < <(option_sets)
}

@test "dllm-sample: statistics are asked for where they are offered" {
	echo 1 2 3 >in
	works dllm-sample --max-tokens 4 --steps 2 -- fake-forward --log log <in
	[ "$(sed 's/ : .*//' log)" = "forward 0 rows=3:4 want=stats \
algorithm=llada greedy=0 seed=42 step=0 temperature=0 top-p=1 top-k=0 ban=38
$(sed -n '2s/ : .*//p' log)" ]
	rm log
	works dllm-sample --max-tokens 4 --share logits.npy -- \
		fake-forward --log log <in
	run ! grep want= log
	[ "$(head -c 6 logits.npy | tail -c 5)" = NUMPY ]
	[ "$(stat -c %a logits.npy)" = 600 ]
	rm log
	works dllm-sample --max-tokens 4 --steps 2 --cfg-scale 1 -- \
		fake-forward --log log <in
	[ "$(sed 's/.* : //; s/38 38 38 38.*/+4/' log | head -n 2)" = "1 2 3 +4
38 38 38 +4" ] || [ "$(sed -n '2s/.* : //p' log)" = '38 38 38 38 38 38 38' ]
	[ "$(wc -l <log)" -eq 4 ]
}

@test "dllm-sample: a step without a quota asks for nothing" {
	echo 1 2 >in
	works dllm-sample --max-tokens 8 --steps 40 --no-early-stop --trace t \
		-- fake-forward --log log <in
	[ "$(wc -l <log)" -eq 8 ]
	[ "$(grep -c '"forwards":0' t)" -eq 32 ]
	[[ $(tail -n 1 t) = '{"end":"'*'","steps":40,"forwards":8,"ms":'* ]]
}

@test "dllm-sample: the early stop changes nothing that is printed" {
	local seed stopped=0
	echo 5 2 6 >in
	for seed in 1 2 3 4 5 6 7 8 9 10; do
		dllm-sample --max-tokens 24 --temperature 1 --seed $seed \
			--block-length 8 --trace t -- \
			fake-forward --vocab 12 --mask 11 <in >early
		dllm-sample --max-tokens 24 --temperature 1 --seed $seed \
			--block-length 8 --no-early-stop -- \
			fake-forward --vocab 12 --mask 11 <in >all
		[ "$(wc -w <all)" -eq 24 ]
		awk '{ for (i = 1; i <= NF; i++) {
			printf "%s%s", (i > 1 ? " " : ""), $i
			if ($i == 2 || $i == 3) break }
			print "" }' all | cmp - early
		[ "$(grep -c '"step"' t)" -eq 24 ] || stopped=$((stopped + 1))
	done
	[ $stopped -gt 3 ]
}

@test "dllm-sample: many lines, one child, each as if alone" {
	printf '%s\n' '1 2 3' '' '7' '1 2 3' >in
	works dllm-sample --max-tokens 6 --temperature 1 -- \
		sh -c 'echo x >>started; exec fake-forward' <in
	printf '%s\n' "$output" >all
	[ "$(wc -l <all)" -eq 4 ]
	[ "$(wc -l <started)" -eq 1 ]
	[ "${lines[0]}" = "${lines[3]}" ]
	for i in 1 2 3; do
		sed -n ${i}p in | dllm-sample --max-tokens 6 --temperature 1 \
			-- fake-forward
	done >each
	head -n 3 all | cmp - each
}

@test "dllm-sample: --canvas, and --max-tokens 0 fills a line's masks" {
	echo 5 38 38 6 38 >in
	works dllm-sample --max-tokens 0 --trace t -- fake-forward --log log <in
	[[ $output =~ ^5\ [0-9]+\ [0-9]+\ 6\ [0-9]+$ ]]
	run ! grep -w 38 <<<"$output"
	[ "$(wc -l <log)" -eq 3 ]
	works dllm-sample --max-tokens 0 --json -- fake-forward <in
	[[ $output = *'"prompt_tokens":5,"generated_tokens":3,"steps":3,'* ]]
	run --separate-stderr dllm-sample --max-tokens 0 --verbose -- fake-forward <in
	[ "$status" -eq 0 ]
	[[ $stderr == *"generation tokens: 3"* ]]
	works dllm-sample --max-tokens 0 --steps 1 -- fake-forward <in
	works dllm-sample --max-tokens 2 --canvas -- fake-forward <in
	[ "$(wc -w <<<"$output")" -eq 7 ]
	echo 5 6 >in
	works dllm-sample --max-tokens 0 -- fake-forward <in
	[ "$output" = '5 6' ]
	echo >in
	works dllm-sample --max-tokens 0 -- fake-forward <in
	[ "$output" = '' ]
}

@test "dllm-sample: masks in the prompt are filled, or stay as they do in the reference" {
	echo 5 38 38 6 >in
	works dllm-sample --max-tokens 4 --canvas -- fake-forward <in
	run ! grep -w 38 <<<"$output"
	run dllm-sample --max-tokens 4 --canvas --prompt-masks reference -- \
		fake-forward <in
	[ "$status" -eq 0 ]
	[[ $output = *'dllm-sample: warning: line 1: 2 masks are left' ||
		$output = 'dllm-sample: warning: line 1: 2 masks are left'* ]]
}

# words N FILE: it has N of them so far
words() {
	[ "$(wc -w <"$2")" -eq "$1" ]
}

@test "dllm-sample: --stream writes the same bytes, as they are decided" {
	echo 5 6 >in
	for options in '' '--canvas' '--no-early-stop' '--temperature 1'; do
		# shellcheck disable=SC2086 # words
		dllm-sample $options -- fake-forward <in >plain
		# shellcheck disable=SC2086
		dllm-sample $options --stream -- fake-forward <in >stream
		same plain stream
	done
	dllm-sample --block-length 1 --no-early-stop --stream -- \
		fake-forward --how hang --at 5 <in >early 3>&- &
	wait_until 20 words 5 early
	kill $!
}

@test "dllm-sample: --all-rows asks for all of them and decides the same" {
	echo 5 6 >in
	for options in '' '--cfg-scale 1.5' '--share logits.npy'; do
		for first in 0 1; do
			# shellcheck disable=SC2086 # words
			dllm-sample --max-tokens 8 --temperature 1 --canvas $options \
				-- fake-forward --first $first <in >needed
			# shellcheck disable=SC2086
			dllm-sample --max-tokens 8 --temperature 1 --canvas $options \
				--all-rows --trace trace --dump-step-stats \
				-- fake-forward --first $first <in >all 2>steps
			same needed all
			[ "$(grep -c "\"rows\":$((10 - first))," trace)" -eq 8 ]
			[ "$(grep -c " rows=$((10 - first)) " steps)" -eq 8 ]
		done
	done
	# a line of another length
	printf '5 6\n1 2 3 4 5 6 7\n5\n' >in
	dllm-sample --max-tokens 8 -- fake-forward <in >needed
	dllm-sample --max-tokens 8 --all-rows -- fake-forward <in >all
	same needed all
}

@test "dllm-sample: --json" {
	echo 5 6 >in
	works dllm-sample --max-tokens 3 --no-early-stop --json -- \
		fake-forward <in
	[[ $output =~ ^'{"tokens":['[0-9]+,[0-9]+,[0-9]+'],"prompt_tokens":2,'\
'"generated_tokens":'[0-3]',"steps":3,"forwards":3,"seed":42,"finish":"'\
(end|length)'","model":"fake model","device":"cpu","threads":1,"load_ms":'\
[0-9.]+',"step_ms":['[0-9.]+,[0-9.]+,[0-9.]+'],"forward_ms":['[0-9.]+,[0-9.]+,[0-9.]+'],"total_ms":'[0-9.]+\
',"tokens_per_s":'[0-9.]+',"peak_rss_bytes":'[1-9][0-9]+'}'$ ]]
}

@test "dllm-sample: steps that commit nothing are passed over, all at once" {
	echo 5 6 >in
	for options in '' '--prompt-masks reference' '--block-length 8' \
		'--algorithm entropy' '--algorithm entropy --eps 0.5'; do
		# shellcheck disable=SC2086 # words
		set -- $options --max-tokens 24 --no-early-stop --temperature 1
		works dllm-sample "$@" --steps 2147483647 --json -- \
			fake-forward <in
		[[ $output = *'"steps":2147483647,"forwards":'* ]]
		# a trace holds them all; the same bytes without
		dllm-sample "$@" --steps 3000 --trace t -- fake-forward \
			<in >traced
		dllm-sample "$@" --steps 3000 -- fake-forward <in >plain
		same traced plain
		[ "$(grep -c '^{"step":' t)" -eq 3000 ]
		n=$(grep -c '^{"step":.*"forwards":1' t)
		[ "$n" -ge 1 ]
		[ "$n" -le 24 ]
		dllm-sample "$@" --steps 3000 --json -- fake-forward <in >json
		[[ $(<json) = *'"steps":3000,"forwards":'$n,* ]]
		# and a time for each that was made
		run grep -o '"step_ms":\[[^]]*' json
		[ "$(tr , '\n' <<<"$output" | wc -l)" -eq "$n" ]
	done
}

@test "dllm-sample: --verbose and --dump-step-stats" {
	echo 5 6 >in
	run dllm-sample --max-tokens 2 --no-early-stop --verbose -- \
		fake-forward <in 2>&1 >/dev/null
	[ "$status" -eq 0 ]
	sed 's/: [0-9.]* \([smM]\)/: T \1/; s/second: .*/second: T/' \
		<<<"$output" >text
	printf '%s\n' 'model: fake model' 'quantization: F32' 'device: cpu' \
		'threads: 1' 'prompt tokens: 2' 'generation tokens: 2' \
		'diffusion steps: 2' 'load time: T s' 'step 1: T ms' \
		'step 2: T ms' 'generation: T s' 'tokens per second: T' \
		'peak RSS: T MB' >want
	grep -v '^[0-9 ]*$' text | diff want -
	# what the child calls itself cannot command a terminal
	run dllm-sample --max-tokens 1 --verbose -- sh -c \
		'fake-forward | sed -u "s/model=[^ ]*/model=%1b[31m%0ax/"' <in
	grep -qx 'model: ?\[31m?x' <<<"$output"
	# all facts stand before the line, so that it can end a terminal's
	dllm-sample --max-tokens 2 --verbose -- fake-forward <in >all 2>&1
	tail -n 1 all | grep -qx '[0-9 ]*'
	run --separate-stderr dllm-sample --max-tokens 2 --steps 3 \
		--dump-step-stats --no-early-stop -- fake-forward <in
	[ "$status" -eq 0 ]
	[[ ${stderr_lines[0]} =~ ^step=0\ block=0\ committed=1\ masks=1\ \
conf_min=0\.[0-9]+\ conf_mean=0\.[0-9]+\ rows=2\ ms=[0-9.]+$ ]]
	[[ ${stderr_lines[2]} =~ ^step=2\ block=0\ committed=0\ masks=0\ \
conf_min=-\ conf_mean=-\ rows=0\ ms=[0-9.]+$ ]]
}

@test "dllm-sample: a progress line on a terminal, erased at the end" {
	command -v script >/dev/null || skip 'script(1) is missing'
	echo 5 6 >in
	script -qec 'dllm-sample --max-tokens 12 -- fake-forward <in >out' log \
		</dev/null >/dev/null
	grep -q 'step 1/12' log
	[ "$(wc -l <out)" -eq 1 ]
	# the last thing drawn is spaces and a return
	tr '\r' '\n' <log | grep -A 1 'step 12/12' | tail -n 1 | grep -q '^ *$'
	# whoever reads the trace from a pipe shows more
	script -qec 'dllm-sample --max-tokens 12 --trace /dev/fd/3 -- \
		fake-forward <in 3>&1 >out | wc -l >lines' log2 \
		</dev/null >/dev/null
	[ "$(cat lines)" -eq 14 ]
	run grep step log2
	[ "$status" -eq 1 ]
}

@test "dllm-sample: --trace appears whole or not at all" {
	echo 5 6 >in
	works dllm-sample --max-tokens 4 --trace t -- fake-forward <in
	[[ $(head -n 1 t) = '{"dllm_trace":1,"line":0,"prompt":2,"canvas":[5,6,38,38,38,38],"model":{"arch":"llada",'* ]]
	rm t
	fails 1 'dllm-sample: ERROR: fake-forward exited with status 4 in step 2' \
		dllm-sample --max-tokens 4 --trace t -- \
		fake-forward --how exit --at 2 <in
	[ -z "$(find . -name '*t.*')" ]
	[ ! -e t ]
	fails 1 "dllm-sample: ERROR: cannot create 'no/t': No such file or \
directory" dllm-sample --trace no/t -- fake-forward <in
}

# broken MESSAGE HOW OPTION...: what a child that misbehaves leads to
broken() {
	local msg=$1 how=$2
	shift 2
	fails 1 "$msg" dllm-sample --max-tokens 4 -- \
		fake-forward --how "$how" --at 1 "$@" <in
}

@test "dllm-sample: a child that dies" {
	echo 5 6 >in
	fails 1 "dllm-sample: ERROR: cannot run 'fake-froward': No such file or \
directory" dllm-sample -- fake-froward <in
	fails 1 "dllm-sample: ERROR: cannot run './in': Permission denied" \
		dllm-sample -- ./in <in
	local e='dllm-sample: ERROR: fake-forward'
	broken "$e exited with status 3 before it was ready" die-loading
	broken "$e exited with status 0 before it was ready" silent
	broken "$e exited with status 4 in step 1" exit
	broken "$e was killed by signal 9 in step 1" kill
	broken "$e exited with status 5 in step 1, inside a line" half
	broken "$e exited with status 6 in step 1" few-rows
}

@test "dllm-sample: a child that breaks the protocol" {
	echo 5 6 >in
	local e='dllm-sample: ERROR: fake-forward:' l=--no-stats
	broken "$e not a greeting of a forward process" greeting
	broken "$e answered request 2 instead of 1" seq
	broken "$e answered with 2 rows instead of 3" rows
	broken "$e not a reply: 'segmentation fault'" no-reply
	broken "$e out of paper" error
	broken "$e row 3 instead of row 2" wrong-row
	broken "$e row 2: token 40 is outside the vocabulary" bad-id
	broken "$e bytes=1073746400 is beyond the 4736 reserved" bytes $l
	broken "$e the logits are not 3 x 40 f32 in 4576 bytes" header $l
	broken "$e logits: not a .npy file" not-npy $l
	broken "$e the file of the logits has shrunk" shrink $l
	broken "dllm-sample: ERROR: step 1: position 2: the logit of token 5 \
is NaN" nan $l
}

@test "dllm-sample: a child that talks and does not listen" {
	echo 5 6 >in
	fails 1 'dllm-sample: ERROR: sh was killed by signal 13 in step 0' \
		timeout 60 dllm-sample -- sh -c 'exec <&-
		echo dllm-forward 1 arch=llada vocab=40 mask=38
		exec yes' <in
}

@test "dllm-sample: a child that fails after its last answer" {
	echo 5 6 >in
	run --separate-stderr dllm-sample --max-tokens 4 -- \
		fake-forward --how late <in
	[ "$status" -eq 1 ]
	[ "$stderr" = 'dllm-sample: ERROR: fake-forward exited with status 7 at the end' ]
	run --separate-stderr dllm-sample --max-tokens 4 -- \
		fake-forward --how more <in
	[ "$status" -eq 1 ]
	[ "$stderr" = 'dllm-sample: ERROR: fake-forward printed more than it was asked for' ]
}

@test "dllm-sample: a child that closes its output and lives on is ended" {
	greeting='dllm-forward 1 arch=llada vocab=40 mask=38 eos=2 ctx=999'
	echo 5 6 >in
	fails 1 'dllm-sample: ERROR: sh closed its output, did not end and was killed before it was ready' \
		dllm-sample -- sh -c 'echo $$ >pid; exec sleep 50 >&-' <in
	wait_until 5 gone "$(cat pid)"
	fails 1 'dllm-sample: ERROR: sh closed its output, did not end and was killed in step 0' \
		dllm-sample -- sh -c "trap '' TERM; echo $greeting want=stats,logits
			exec >&-; echo \$\$ >pid; exec sleep 50" <in
	wait_until 5 gone "$(cat pid)"
}

@test "dllm-sample: input that never ends fills no memory" {
	echo 5 6 >in
	fails 1 'dllm-sample: ERROR: cannot read standard input: Message too long' \
		dllm-sample -- fake-forward </dev/zero
	fails 1 'dllm-sample: ERROR: cannot read from cat: Message too long' \
		dllm-sample -- cat /dev/zero <in
	fails 1 "dllm-sample: ERROR: cannot read '/dev/zero': more than 512 MiB" \
		dllm-sample --step 0 --prompt-length 1 --plan \
		--greeting /dev/zero <in
}

@test "dllm-sample: input that ended, or is not token lines" {
	local e='dllm-sample: ERROR: standard input'
	fails 1 "$e ended before a token line" \
		dllm-sample -- fake-forward </dev/null
	printf '1 2' >in
	fails 1 "$e ended inside a token line" dllm-sample -- fake-forward <in
	echo 1 x >in
	fails 1 "$e: line 1: byte 3: not a token id" \
		dllm-sample -- fake-forward <in
	echo 1 40 >in
	fails 1 "$e: line 1: token 40 is outside the vocabulary of 40" \
		dllm-sample -- fake-forward <in
	echo 1 2 >in
	fails 1 "$e: line 1: 2 tokens of prompt and 128 new ones exceed the \
longest request of 100" dllm-sample -- fake-forward --ctx 100 <in
	fails 1 "$e: line 1: 2 tokens of prompt and 2147483647 new ones exceed \
the longest request of 512" dllm-sample --max-tokens 2147483647 -- \
		fake-forward <in
	echo 38 2 >in
	fails 1 "$e: line 1: position 0 is masked, and this model cannot \
predict it" dllm-sample -- fake-forward --first 1 <in
	fails 1 "$e: line 1: no defaults for the model family 'gpt': give \
--algorithm" dllm-sample -- fake-forward --arch gpt <in
	works dllm-sample --algorithm entropy -- fake-forward --arch gpt <in
}

@test "dllm-sample: family defaults" {
	echo 1 2 >in
	works dllm-sample --max-tokens 40 --trace t -- fake-forward <in
	[[ $(head -n 1 t) = *'"algorithm":"llada","max-tokens":40,"steps":40,"block-length":32,"temperature":0,"top-p":1,'* ]]
	works dllm-sample --trace t -- fake-forward --arch dream <in
	[[ $(head -n 1 t) = *'"algorithm":"entropy","max-tokens":128,"steps":128,"block-length":128,"temperature":0.2,"top-p":0.95,'* ]]
	works dllm-sample --temperature 0 --trace t -- \
		fake-forward --arch dream <in
	[[ $(head -n 1 t) = *'"temperature":0,"top-p":1,'* ]]
	works dllm-sample --temperature 0 --top-p 0.5 --trace t -- \
		fake-forward --arch dream <in
	[[ $(head -n 1 t) = *'"temperature":0,"top-p":0.5,'* ]]
	works dllm-sample --steps 2 --trace t -- fake-forward <in
	[[ $(head -n 1 t) = *'"steps":2,"block-length":64,'* ]]
}

# misused MESSAGE OPTION...: nothing is started
misused() {
	local msg=$1
	shift
	fails 2 "dllm-sample: ERROR: $msg
dllm-sample: usage: dllm-sample [options] -- COMMAND [ARG...]" \
		dllm-sample "$@" <in
	[ ! -e started ]
}

@test "dllm-sample: a wrong command line starts nothing" {
	local run=(-- touch started) step=(--step 1 --prompt-length 1 --greeting in)
	echo 1 2 >in
	misused 'the command to run is missing (-- dllm-forward --serve --model PATH)'
	misused "unknown option '--step-s' (did you mean --steps?)" --step-s 2 "${run[@]}"
	misused "--steps '0': not in 1..2147483647" --steps 0 "${run[@]}"
	misused "--seed '18446744073709551616': not in 0..18446744073709551615" \
		--seed 18446744073709551616 "${run[@]}"
	misused "--temperature '-1': below 0" --temperature -1 "${run[@]}"
	misused "--top-p '1.5': not in 0..1" --top-p 1.5 "${run[@]}"
	misused "--remasking 'high': not one of low_confidence, random" \
		--remasking high "${run[@]}"
	misused '--steps 3: fewer than the 4 blocks of --block-length 32' \
		--block-length 32 --steps 3 "${run[@]}"
	misused '--block-length: without new tokens the line is one block' \
		--max-tokens 0 --block-length 4 "${run[@]}"
	misused '--prompt-masks reference: without new tokens all masks are counted' \
		--max-tokens 0 --prompt-masks reference "${run[@]}"
	misused "--cfg-scale '1e39': not in 0..3.40282e+38" --cfg-scale 1e39 "${run[@]}"
	misused '--stream and --json exclude each other' --stream --json "${run[@]}"
	misused '--plan, --prompt-length, --greeting, --logits and --uncond need --step' \
		--plan "${run[@]}"
	misused '--step needs --prompt-length and --greeting' --step 1 --plan
	misused "unexpected argument 'touch'" "${step[@]}" --plan "${run[@]}"
	misused '--step needs --plan or --logits' "${step[@]}"
	misused '--plan needs no --logits and no --uncond' "${step[@]}" --plan --logits x
	misused '--cfg-scale and --uncond go together' "${step[@]}" --logits x --uncond y
	misused '--cfg-scale and --uncond go together' "${step[@]}" --logits x --cfg-scale 1
	misused '--trace, --share, --stream, --json, --canvas, --dump-step-stats, --verbose and --all-rows do not go with --step' \
		"${step[@]}" --plan --trace t
}

@test "dllm-sample: --step refuses what does not fit" {
	fake-forward </dev/null >greeting
	echo 1 2 38 38 >in
	local step=(--prompt-length 2 --greeting greeting)
	misused '--step 2: there are only 2 steps' "${step[@]}" --step 2 --plan
	misused '--max-tokens 3: the line has 2 ids after --prompt-length' \
		"${step[@]}" --step 0 --plan --max-tokens 3
	misused '--prompt-length 5: the line has only 4 ids' \
		--greeting greeting --prompt-length 5 --step 0 --plan
	misused '--step without new tokens needs --steps' \
		--greeting greeting --prompt-length 4 --step 0 --plan
	misused '--steps 1: fewer than the 2 blocks of --block-length 1' \
		"${step[@]}" --step 0 --plan --steps 1 --block-length 1
	fails 1 "dllm-sample: ERROR: cannot open 'no.npy': No such file or \
directory" dllm-sample "${step[@]}" --step 0 --logits no.npy <in
	fake-forward --rows 1:1 --logits one.npy <in
	fails 1 'dllm-sample: ERROR: one.npy: not 2 or 4 rows of 40 f32' \
		dllm-sample "${step[@]}" --step 0 --logits one.npy <in
	fake-forward --rows 2:2 --logits two.npy <in
	{
		printf '\223NUMPY\001\0\075\0%-60s\n' \
			"{'descr':'<f4','fortran_order':False,'shape':(2,40),}"
		tail -c 320 two.npy
	} >odd.npy
	fails 1 'dllm-sample: ERROR: odd.npy: the array is not aligned' \
		dllm-sample "${step[@]}" --step 0 --logits odd.npy <in
	echo hello >hello
	fails 1 'dllm-sample: ERROR: hello: not a greeting of a forward process' \
		dllm-sample --prompt-length 2 --greeting hello --step 0 --plan <in
	printf '%s\n' '1 2 38' '1 2 38' >two
	fails 1 'dllm-sample: ERROR: --step takes one line' \
		dllm-sample "${step[@]}" --step 0 --plan <two
}

@test "dllm-sample: guidance too weak for f32 is none, live and stepwise" {
	fake-forward </dev/null >greeting
	echo 1 2 38 >in
	works dllm-sample --prompt-length 2 --greeting greeting --step 0 \
		--cfg-scale 1e-50 --plan <in
	[ "$output" = 2:1 ]
	echo 1 2 >in
	works dllm-sample --max-tokens 1 --cfg-scale 1e-50 -- \
		fake-forward --log log <in
	[ "$(wc -l <log)" -eq 1 ]
}

@test "dllm-sample: --step takes the rows of all positions too" {
	fake-forward --first 1 </dev/null >greeting
	echo 1 2 38 38 38 >in
	local step=(dllm-sample --prompt-length 2 --greeting greeting --step 0
		--steps 2)
	works "${step[@]}" --plan <in
	[ "$output" = 2:3 ]
	fake-forward --rows 2:3 --logits some.npy <in
	fake-forward --rows 1:4 --logits all.npy <in
	"${step[@]}" --logits some.npy <in >some
	"${step[@]}" --logits all.npy <in >all
	same some all
	run ! cmp -s some in
}

# started: the child's process id is known
started() {
	[ -s pid ]
}

@test "dllm-sample: killed, it leaves no child and no file" {
	local sig
	echo 5 6 >in
	mkdir shm
	for sig in KILL TERM HUP; do
		rm -f pid
		DLLM_SHM=$PWD/shm dllm-sample --trace t -- \
			sh -c 'echo $$ >pid; exec fake-forward --how hang --at 1' \
			<in >out 2>err 3>&- &
		wait_until 20 started
		kill -$sig $!
		wait_until 20 gone $!
		wait_until 20 gone "$(cat pid)"
		[ ! -s out ]
		[ -z "$(ls shm)" ]
		[ ! -e t ]
		[ $sig = KILL ] || [ -z "$(find . -name '.t.*')" ]
		rm -f .t.*
	done
}

@test "dllm-sample: no signal leaves a file" {
	echo 5 6 >in
	# Not PIPE: beside a child that may go away it is ignored.
	for signal in HUP QUIT ALRM USR1 USR2 XCPU; do
		# Started by env: a shell would have it ignore SIGQUIT.
		env --default-signal dllm-sample --trace t -- \
			sh -c 'echo "$$" >pid; exec sleep 50' <in >out 2>err 3>&- &
		wait_until 20 test -s pid
		kill -"$signal" $!
		wait_until 20 gone $!
		wait_until 5 gone "$(cat pid)"
		rm -f pid out err
		[ "$(ls -A)" = in ]
	done
}

@test "dllm-sample: Ctrl-C ends it and its child" {
	echo 5 6 >in
	env --default-signal=INT true 2>/dev/null ||
		skip 'this env(1) has no --default-signal'
	setsid env --default-signal=INT sh -c 'echo $$ >group
		exec dllm-sample --trace t -- sh -c "echo \$\$ >pid
		exec fake-forward --how hang --at 1"' <in >out 2>err 3>&- &
	wait_until 20 started
	kill -INT -- "-$(cat group)"
	wait_until 20 gone "$(cat group)"
	wait_until 20 gone "$(cat pid)"
	[ ! -s out ]
	[ ! -s err ]
	[ -z "$(find . -name '*t.*')" ]
	[ ! -e t ]
}

@test "dllm-sample: output that nobody takes" {
	echo 5 6 >in
	fails 1 'dllm-sample: ERROR: cannot write token lines: No space left on device' \
		sh -c 'dllm-sample -- fake-forward <in >/dev/full'
	fails 1 'dllm-sample: ERROR: cannot write standard output: No space left on device' \
		sh -c 'dllm-sample --json -- fake-forward <in >/dev/full'
	fails 1 'dllm-sample: ERROR: cannot write token lines: No space left on device' \
		sh -c 'dllm-sample --stream -- fake-forward <in >/dev/full'
	fails 1 "dllm-sample: ERROR: cannot write '/dev/full': No space left on device" \
		dllm-sample --trace /dev/full -- fake-forward <in
}

@test "dllm-sample: a reader that went away ends it silently" {
	echo 5 6 >in
	for options in '' --stream --json; do
		# shellcheck disable=SC2016 # for bash
		run --separate-stderr bash -c "dllm-sample $options -- \
			sh -c 'sleep 0.1; exec fake-forward' <in |
			head -c 0; echo \${PIPESTATUS[0]}"
		[ "$output" = 141 ]
		[ -z "$stderr" ]
	done
}

@test "dllm-sample: a reader that went away leaves no trace file" {
	printf '5 6\n%.0s' 1 2 3 4 >in
	for options in '' --stream --json; do
		# shellcheck disable=SC2016 # for bash
		run --separate-stderr bash -c "dllm-sample $options --trace t \
			-- sh -c 'sleep 0.1; exec fake-forward' <in |
			head -c 0; echo \${PIPESTATUS[0]}"
		[ "$output" = 141 ]
		[ -z "$stderr" ]
		[ -z "$(find . -name "*t.*")" ]
		[ ! -e t ]
	done
}

@test "dllm-sample: no space for the logits" {
	echo 5 6 >in
	# shellcheck disable=SC2016 # for bash
	fails 1 'dllm-sample: ERROR: cannot reserve 45056 bytes for the logits (DLLM_SHM names another folder): File too large' \
		bash -c 'ulimit -f 8; dllm-sample --max-tokens 4 -- \
		fake-forward --no-stats --vocab 2560 <in'
	fails 1 "dllm-sample: ERROR: cannot create a file in 'nowhere' \
(DLLM_SHM): No such file or directory" \
		env DLLM_SHM=nowhere dllm-sample -- fake-forward <in
	fails 1 "dllm-sample: ERROR: cannot create 'no/x': No such file or \
directory" dllm-sample --share no/x -- fake-forward <in
}

@test "dllm-sample: kernels are chosen by DLLM_CPU, with equal bits" {
	local args=(--max-tokens 4 --temperature 0.7 --share logits.npy)
	echo 1 2 >in
	works dllm-sample "${args[@]}" -- fake-forward <in
	echo "$output" >want
	DLLM_CPU=scalar works dllm-sample "${args[@]}" -- fake-forward <in
	[ "$output" = "$(cat want)" ]
	DLLM_CPU=sse9 fails 2 "dllm-sample: ERROR: DLLM_CPU: 'sse9': not one of \
scalar, avx2, avxvnni, avx512vnni, neon, dotprod, i8mm
dllm-sample: usage: dllm-sample [options] -- COMMAND [ARG...]" \
		dllm-sample "${args[@]}" --trace trace -- fake-forward <in
	[ ! -e trace ]
}

@test "dllm-sample: --share empties no file but an array" {
	echo 5 6 >in
	echo precious >notes
	mkfifo fifo
	for path in notes fifo /dev/null; do
		fails 1 "dllm-sample: ERROR: cannot create '$path': it exists \
and is no .npy file" dllm-sample --share $path -- fake-forward <in
	done
	[ "$(cat notes)" = precious ]
	fails 1 "dllm-sample: ERROR: cannot reserve 45056 bytes in 'big.npy': \
File too large" bash -c 'ulimit -f 8; dllm-sample --max-tokens 4 \
		--share big.npy -- fake-forward --vocab 2560 <in'
	for vocab in 50 40; do
		dllm-sample --max-tokens 4 --share s.npy -- \
			fake-forward --vocab $vocab <in
	done
	[ "$(stat -c %s s.npy)" = $((4096 + 4 * 4 * 40)) ]
}

@test "dllm-sample: space for the masks of a block or line, not for more" {
	{
		seq -s ' ' 1 37
		seq -s ' ' 1 37
	} | tr '\n' ' ' >long
	sed 's/$/38/' long >in
	echo >>in
	works dllm-sample --max-tokens 0 --share logits -- fake-forward <in
	[ "$(stat -c %s logits)" -eq $((4096 + 40 * 4)) ]
	works dllm-sample --max-tokens 2 --block-length 100 --share logits -- \
		fake-forward <in
	[ "$(stat -c %s logits)" -eq $((4096 + 3 * 40 * 4)) ]
}

@test "dllm-sample: a full tmpfs is an error, not a crash" {
	echo 5 6 >in
	mkdir shm
	mount -t tmpfs -o size=16k none shm 2>/dev/null ||
		skip 'mounting a tmpfs is not allowed'
	run --separate-stderr env DLLM_SHM="$PWD/shm" dllm-sample \
		--max-tokens 4 -- fake-forward --no-stats --vocab 2560 <in
	wait_until 20 umount shm # the child may still have a file there
	[ "$status" -eq 1 ]
	[ -z "$output" ]
	[ "$stderr" = 'dllm-sample: ERROR: cannot reserve 45056 bytes for the logits (DLLM_SHM names another folder): No space left on device' ]
}
