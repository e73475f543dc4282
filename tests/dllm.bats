#!/usr/bin/env bats
# dllm with the real tools and the demo model.
# shellcheck disable=SC2016,SC2034,SC2154 # literal text; set for bats or by run

load helpers
BATS_TEST_TIMEOUT=300

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	model=$models/pocket-llada-q4_k_m.gguf
}

# answers TEXT ARGUMENT...: dllm run prints TEXT and a line feed, no more
answers() {
	printf '%s\n' "$1" >want
	shift
	dllm run "$@" >got 2>err </dev/null
	cat got err >&2
	[ ! -s err ]
	same got want
}

# interrupted SIGNAL NAME COMMAND...: start it (not from a shell, which would
# have it ignore SIGINT); as soon as a process whose name begins with NAME is
# below it, signal the command alone.  Prints the signal it died of, then the processes that were
# below it.
interrupted() {
	perl -e '
	my ($signal, $name, @command) = @ARGV;
	my $p = fork // die;
	if (!$p) {
		open STDIN, "<", "/dev/null";
		open STDOUT, ">", "../out";
		exec @command;
	}
	my (@found, $seen);
	until ($seen) {
		select undef, undef, undef, 0.02;
		die "it ended" if waitpid($p, 1) == $p; # 1: WNOHANG
		my %below;
		for (`ps -eo pid=,ppid=,comm=`) {
			my ($pid, $parent, $comm) = split;
			push @{$below{$parent}}, [$pid, $comm];
		}
		@found = ();
		for (my @todo = ($p); @todo; ) {
			my @children = @{$below{shift @todo} // []};
			push @found, map { $_->[0] } @children;
			push @todo, map { $_->[0] } @children;
			$seen ||= grep { !index $_->[1], $name } @children;
		}
	}
	kill $signal, $p;
	waitpid $p, 0;
	print map { "$_\n" } $? & 127, @found;' "$@"
}

@test "dllm run: the sum of the specification" {
	for m in q4_k_m q8_0; do
		answers '37 + 48 = 85.' --model "$models/pocket-llada-$m.gguf" \
		    --prompt 'What is 37 + 48?' --max-tokens 32 --steps 32 --seed 42
	done
}

@test "dllm run: other questions, the demo model without being named" {
	answers 'The capital of Norway is Oslo.' 'What is the capital of Norway?' -n 32
	answers 'apple, fig, pear' 'Sort these words: pear, apple, fig.' -n 32
	echo 'not looked at' >prompt
	printf 'What is 2 + 3?' >prompt
	dllm run -n 16 <prompt >got
	echo '2 + 3 = 5.' | cmp - got
	answers '2 + 3 = 5.' --prompt-file prompt -n 16
}

@test "dllm run: the same bytes for any number of threads, and again" {
	for n in 1 2 7 1; do
		dllm run --threads "$n" --temperature 2 --trace "trace-$n" \
		    -n 24 'Tell me a story about a fox.' >"text-$n"
		# all of the trace but times and the number of threads
		sed 's/"ms":[0-9.]*//; s/"threads":[0-9]*//' "trace-$n" \
		    >"decisions-$n"
		same text-1 "text-$n"
		same decisions-1 "decisions-$n"
	done
	dllm run --temperature 2 --seed 43 -n 24 'Tell me a story about a fox.' \
	    >other
	run ! cmp -s text-1 other
}

@test "dllm run: --stream gives the same bytes" {
	dllm run -n 32 'Tell me a story about a fox.' >whole
	dllm run -n 32 --stream 'Tell me a story about a fox.' >stream
	same whole stream
}

@test "dllm run: many prompts in one run" {
	printf 'What is 2 + 3?\nWhat is the capital of Norway?\n' >prompts
	works dllm run --lines -n 16 <prompts
	[ "$output" = $'2 + 3 = 5.\nThe capital of Norway is Oslo.' ]
	tr '\n' '\0' <prompts >null
	dllm run --null -n 16 <null >got
	printf '2 + 3 = 5.\0The capital of Norway is Oslo.\0' | cmp - got
}

@test "dllm run: --json" {
	works dllm run --json -n 16 --steps 8 --seed 7 'What is 2 + 3?'
	[ "${#lines[@]}" -eq 1 ]
	for part in '{"text":"2 + 3 = 5.","tokens":[50,' '"prompt_tokens":18,' \
	    '"steps":8,' '"forwards":' '"seed":7,' '"finish":"end"' \
	    '"model":"pocket-llada-q4_k_m.gguf"' '"device":"cpu"' \
	    '"threads":' '"load_ms":' '"step_ms":[' '"total_ms":' \
	    '"tokens_per_s":' '"peak_rss_bytes":' '"generated_tokens":'; do
		[[ $output = *"$part"* ]] || {
			printf 'missing: %s\n' "$part" >&2
			false
		}
	done
}

@test "dllm run: --verbose and --dump-step-stats, on standard error" {
	run --separate-stderr dllm run --verbose -n 4 --steps 2 'What is 2 + 3?'
	[ "$status" -eq 0 ]
	printf '%s\n' "$stderr" | sed 's/[0-9][0-9.]*/N/g' >facts
	diff facts - <<-'END'
	model: pocket-llada-qN_k_m.gguf
	quantization: QN_K_M
	device: cpu
	threads: N
	prompt tokens: N
	generation tokens: N
	diffusion steps: N
	load time: N s
	step N: N ms
	step N: N ms
	generation: N s
	tokens per second: N
	peak RSS: N MB
	END
	run --separate-stderr dllm run --dump-step-stats -n 4 --steps 2 x
	[ "${#stderr_lines[@]}" -eq 2 ]
	[[ ${stderr_lines[1]} = 'step=1 block=0 committed=2 masks=0 conf_min='* ]]
}

@test "dllm run: --watch draws on standard error" {
	run --separate-stderr dllm run --watch -n 12 'What is 2 + 3?'
	[ "$status" -eq 0 ]
	[ "$output" = '2 + 3 = 5.' ]
	[ "$(printf '%s\n' "$stderr" | grep -c '^step ')" -eq 13 ]
	[[ $stderr = *'2 + 3 = 5.'* ]]
	fails 1 "tok-encode: ERROR: cannot open 'no.gguf': No such file or directory" \
	    dllm run --watch -m no.gguf x
	run --separate-stderr dllm run --watch -n 12 --steps 0 x
	[ "$status" -eq 2 ]
	[[ ${stderr_lines[0]} = "dllm-sample: ERROR: --steps '0':"* ]]
	[ "${#stderr_lines[@]}" -eq 2 ]
}

@test "dllm run: --canvas and infilling print everything" {
	tok-encode --model "$model" --prompt 'What is 2 + 3?' >p
	dllm run --canvas -n 12 'What is 2 + 3?' >got
	grep -q 'What is 2 + 3?' got
	grep -q '2 + 3 = 5.' got
	dllm run --max-tokens 0 --special 'What is 2 <|mdm_mask|> 3?' >got
	grep -q '^What is 2' got
}

@test "--nfc wherever text is read" {
	printf 'caf\303\251' >composed
	printf 'cafe\314\201' >parts
	facts() { # but the prompt and times
		sed 's/"prompt":"[^"]*",//; s/,"load_ms":.*//' >"$1"
	}
	dllm run --json -n 4 --prompt-file composed | facts want
	dllm run --json -n 4 --prompt-file parts --nfc | facts got
	same got want
	dllm run --json -n 4 --prompt-file parts | facts got
	run -1 cmp -s got want
	dllm batch -n 4 --input composed --output answers
	facts want <answers
	dllm batch -n 4 --input parts --output others --nfc
	facts got <others
	same got want
	printf '{"prompt":"%s","answer":"x"}\n' "$(cat composed)" |
		dllm score --samples 1 >want
	printf '{"prompt":"%s","answer":"x"}\n' "$(cat parts)" |
		dllm score --samples 1 --nfc >got
	same got want
	dllm tokenize --prompt-file composed >want
	dllm tokenize --nfc --prompt-file parts >got
	same got want
	for command in 'chat -n 4' 'infill --fill-only --prefix /dev/stdin --hole 2 --no-bos'
	do
		# shellcheck disable=SC2086 # a command and its options
		set -- $command
		echo >>composed
		echo >>parts
		dllm "$@" --trace t <composed >want
		grep dllm_trace t >want
		dllm "$@" --trace t --nfc <parts
		grep dllm_trace t >got
		same got want
		dllm "$@" --trace t <parts
		grep dllm_trace t >got
		run -1 cmp -s got want
	done
	# a text that is infilled is written as it was read
	printf 'cafe\314\201[MASK]' | dllm infill --nfc --no-bos >got
	head -c 6 got | cmp - <(head -c 6 parts)
}

@test "dllm run: what fails, says so once" {
	fails 1 "tok-encode: ERROR: cannot open 'no.gguf': No such file or directory" \
	    dllm run --model no.gguf x
	head -c 3000000 "$model" >cut.gguf
	run --separate-stderr dllm run --model cut.gguf x
	[ "$status" -eq 1 ]
	[ -z "$output" ]
	[ "${stderr_lines[0]}" = 'dllm-forward: ERROR: cut.gguf: the file is incomplete: data of tensor blk.5.attn_v.weight ends at byte 3034880 of 3000000' ]
	[[ ${stderr_lines[1]} = 'dllm-sample: ERROR: '*'dllm-forward exited with status 1 before it was ready' ]]
	[ "${#stderr_lines[@]}" -eq 2 ]
	head -c 300 "$model" >cut.gguf
	fails 1 'tok-encode: ERROR: cut.gguf: header: 29 key-values announced with 276 bytes left in the file' \
	    dllm run --model cut.gguf x
	: >cut.gguf
	fails 1 'tok-encode: ERROR: cut.gguf: the file is empty' \
	    dllm run --model cut.gguf x
	fails 2 "dllm-sample: ERROR: --steps '0': not in 1..2147483647
dllm-sample: usage: dllm run [--model PATH] [--prompt TEXT] [OPTION...] [PROMPT]" \
	    dllm run --steps 0 x
	fails 2 "dllm-sample: ERROR: --temperature 'hot': not a number
dllm-sample: usage: dllm run [--model PATH] [--prompt TEXT] [OPTION...] [PROMPT]" \
	    dllm run --temperature hot x
	fails 1 "dllm-sample: ERROR: cannot create 'no/trace': No such file or directory" \
	    dllm run --trace no/trace x
	fails 1 "dllm-sample: ERROR: standard input: line 1: 20 tokens of prompt and 1000 new ones exceed the longest request of 512" \
	    dllm run -n 1000 'What is 37 + 48?'
	run --separate-stderr sh -c 'dllm run -n 4 x >/dev/full'
	[ "$status" -eq 1 ]
	[ "$stderr" = 'tok-decode: ERROR: cannot write standard output: No space left on device' ]
}

@test "dllm run: a forward that dies is named with its step" {
	mkdir bin
	for tool in dllm tok-encode tok-decode dllm-sample; do
		ln -s "$BUILD/bin/$tool" bin
	done
	rm bin/dllm
	cp "$BUILD/bin/dllm" bin
	printf '#!/bin/sh\nkill -SEGV $$\n' >bin/dllm-forward
	chmod +x bin/dllm-forward
	fails 1 "dllm-sample: ERROR: $PWD/bin/dllm-forward was killed by signal 11 before it was ready" \
	    bin/dllm run --model "$model" x
	cat >bin/dllm-forward <<-'END'
	#!/bin/sh
	dllm-forward "$@" </dev/null
	read -r request
	kill -KILL $$
	END
	run --separate-stderr bin/dllm run --model "$model" x
	[ "$status" -eq 1 ]
	[ -z "$output" ]
	[ "$stderr" = "dllm-sample: ERROR: $PWD/bin/dllm-forward was killed by signal 9 in step 0" ]
}

@test "dllm run: interrupted, it leaves no process and no file" {
	for signal in INT TERM HUP; do
		for name in '' dllm-sample dllm-forward; do
			mkdir here shm
			(cd here && DLLM_SHM=$PWD/../shm interrupted "$signal" \
			    "$name" dllm run -n 400 --no-early-stop \
			    --cfg-scale 1 --trace trace.jsonl x \
			    >../died 2>../err)
			[ "$(head -n 1 died)" -eq "$(kill -l "$signal")" ]
			while read -r pid; do
				wait_until 5 gone "$pid"
			done < <(sed 1d died)
			[ "$name" != dllm-forward ] ||
				[ "$(wc -l <died)" -gt 4 ]
			cat out err
			[ ! -s out ]
			rmdir here shm
		done
	done
}

@test "dllm run: a reader that goes away ends it silently" {
	run --separate-stderr bash -c 'dllm run -n 16 "What is 2 + 3?" | head -c 1'
	[ "$output" = 2 ]
	[ -z "$stderr" ]
}

@test "dllm logits: the rows of a token line" {
	works dllm logits --tokens '1016 1020 1020' --rows 1:2 --output l.npy
	[ -z "$output" ]
	echo 1016 1020 1020 | dllm-forward --model "$model" --rows 1:2 >want.npy
	same l.npy want.npy
	fails 1 "dllm-forward: ERROR: standard input: line 1: byte 1: not a token id" \
	    dllm logits --tokens 'x'
}

@test "dllm run: standard input that is empty is no prompt" {
	fails 1 'tok-encode: ERROR: standard input is empty: no prompt' \
	    sh -c 'cat no 2>/dev/null | dllm run -n 4'
	works dllm run -n 4 ''
}

@test "dllm quantize" {
	works dllm quantize --model "$model" --allow-requantize --type q8_0 \
	    --output q.gguf
	[ "$(gguf-inspect q.gguf | sed -n 's/^quantization: //p')" = Q8_0 ]
}

@test "dllm inspect and tokenize" {
	works dllm inspect "$model"
	[ "$output" = "$(gguf-inspect "$model")" ]
	works dllm tokenize --prompt 'What is 2 + 3?'
	[ "$output" = "$(tok-encode --model "$model" --prompt 'What is 2 + 3?')" ]
	fails 2 "tok-encode: ERROR: --template 'x': not one of llada, chatml
tok-encode: usage: dllm tokenize [--model PATH] [--prompt TEXT] [OPTION...] [PROMPT]" \
	    dllm tokenize --template x y
}

# make_target TARGET VARIABLE...: make it of what is built, building nothing
make_target() {
	env -u MAKEFLAGS -u MAKELEVEL make -s -o all -C "$top" B="$BUILD" "$@"
}

@test "make install: all that is needed, and uninstall removes it" {
	make_target install DESTDIR="$PWD/my root" PREFIX=/usr
	for page in "$top"/man/*; do
		page=${page##*/}
		[ -f "my root/usr/share/man/man${page##*.}/$page" ]
	done
	[ -f 'my root/usr/share/dllm/models/README.md' ]
	echo 'What is 2 + 3?' >q
	PATH=/usr/bin:/bin 'my root/usr/bin/dllm' run -n 16 \
	    'What is 2 + 3?' >got
	echo '2 + 3 = 5.' | cmp - got
	make_target uninstall DESTDIR="$PWD/my root" PREFIX=/usr
	find 'my root' -type f >left
	[ ! -s left ]
	[ ! -e 'my root/usr/share/dllm' ]
}

@test "make uninstall removes nothing that make install did not bring" {
	make_target install DESTDIR="$PWD" PREFIX=/p DATADIR=/p/share
	touch p/share/models/mine.gguf p/bin/mine
	make_target uninstall DESTDIR="$PWD" PREFIX=/p DATADIR=/p/share
	find p -type f | sort >left
	printf '%s\n' p/bin/mine p/share/models/mine.gguf | diff - left
	works make_target uninstall DESTDIR="$PWD/none" PREFIX=/p
}
