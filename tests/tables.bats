#!/usr/bin/env bats
# The tables of README.md are those that bench/tables makes of bench/results,
# and bench/record makes those.
# shellcheck disable=SC2016,SC2034,SC2154 # literal text; set for bats or by run

load helpers
BATS_TEST_TIMEOUT=300

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	cp "$top/README.md" page
}

@test "README: its tables are those of bench/results" {
	works "$top/bench/tables" page
	diff "$top/README.md" page
	# and there is one of each
	for name in peak gemm step generate memory accuracy; do
		[ "$(grep -cx "<!-- bench/tables: $name -->" page)" -eq 1 ]
	done
	[ "$(grep -cx '<!-- end -->' page)" -eq 6 ]
	[ "$(grep -c '^| .* | [0-9.]* ' page)" -gt 20 ]
}

@test "tables: a number that differs is put right, and all else stays" {
	sed 's/^\(| pocket-llada-f16 | f32 | \)86.0/\199.9/' page >wrong
	run -1 cmp -s page wrong
	works "$top/bench/tables" wrong
	same page wrong
	mkdir results
	cp "$top"/bench/results/*.json results
	sed -i 's/"percent": [0-9.]*/"percent": 12.5/' results/eval-pocket-llada-q8_0.json
	sed -i 's/"dirty": *false/"dirty":true/; s/"commit":"[0-9a-f]*"/"commit":"0123456789abcdef"/
	    s/"busy":[0-9.]*/"busy":1.25/' results/peak.json
	for numbers in 148:12.1 32:7.4; do
		printf '{"model":"m","threads":3,"tokens":148,"rows":%d,"ms_median":%s,' \
		    "${numbers%:*}" "${numbers#*:}"
		printf '"share_cpu_median":0.5,"parts":{"products":0.75,"head":0.05},'
		printf '"peak_rss_bytes":5100000000}\n'
	done >>results/step.json
	works "$top/bench/tables" wrong results
	grep -qx '| 3 | 148 | 12 ms | 7 ms | 0.50 | 80 % | 20 % | 5.1 GB |' wrong
	diff page wrong >differences || true
	grep -q '^> | pocket-llada-q8_0 | 8-bit | 12.5 | ' differences
	grep -q '^> `bench/results/peak.json`: .*, commit 0123456789ab (the tree differed from it); other programs used 1.25 CPUs when it began\.$' differences
	[ "$(grep -c '^>' differences)" -eq 3 ]
	cp wrong again
	works "$top/bench/tables" again results
	same wrong again
}

@test "tables: a page that is a link, and a folder of any name" {
	cp -r "$top/bench/results" a=b
	sed 's/^\(| pocket-llada-f16 | f32 | \)86.0/\199.9/' page >wrong
	chmod 600 wrong
	ln -s wrong link
	works "$top/bench/tables" link a=b
	same page wrong
	[ -L link ]
	[ "$(stat -c %a wrong)" = 600 ]
}

@test "tables: what cannot be made leaves the page as it was" {
	mkdir results
	fails 1 'tables: ERROR: results/memory.json: no such file' \
	    "$top/bench/tables" page results
	same "$top/README.md" page
	printf 'a\n<!-- bench/tables: speeds -->\n<!-- end -->\n' >page
	fails 1 "tables: ERROR: page: no table 'speeds'" "$top/bench/tables" page
	for rest in '' '<!-- bench/tables: memory -->
<!-- end -->'; do
		printf 'a\n<!-- bench/tables: memory -->\n%s\n' "$rest" >page
		cp page before
		fails 1 'tables: ERROR: page: a table has no end' "$top/bench/tables" page
		same before page
	done
	fails 1 'tables: ERROR: none: no such file' "$top/bench/tables" none
	cp "$top/README.md" page
	mkdir bad
	for name in peak gemm step generate memory eval-pocket-dream-f16; do
		cp "$top"/bench/results/*.json bad
		printf '{\n"commit":"1234"\n}\n' >"bad/$name.json"
		fails 1 "tables: ERROR: bad/$name.json: no results in it" \
		    "$top/bench/tables" page bad
		: >"bad/$name.json"
		run -1 "$top/bench/tables" page bad
		same "$top/README.md" page
	done
	fails 2 "tables: ERROR: unknown option '--x'
tables: usage: bench/tables [README.md [RESULTS-FOLDER]]" "$top/bench/tables" --x
}

@test "results: each says where it comes from" {
	n=0
	for file in "$top"/bench/results/{eval-*,peak,gemm,step,generate,memory}.json; do
		for key in cpu commit dirty date command; do
			grep -Eq "\"$key\": ?(\"[^\"]|true|false)" "$file" || {
				printf '%s: no %s\n' "$file" "$key" >&2
				false
			}
		done
		n=$((n + 1))
	done
	[ "$n" -gt 15 ]
	for name in peak gemm step generate memory; do
		grep -q "^{\"bench\":\"$name\",$" "$top/bench/results/$name.json"
		grep -q '"flags":"[^"]' "$top/bench/results/$name.json"
	done
}

@test "record: all results, from which the tables can be made" {
	mkdir results tmp
	export BUILD TMPDIR=$PWD/tmp
	run --separate-stderr "$top/bench/record" --quick --results results
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[ "$(cd results && echo * .n*)" = \
	    'gemm.json generate.json memory.json peak.json step.json .n*' ]
	[ -z "$(ls tmp)" ]
	cp "$top"/bench/results/eval-*.json results
	works "$top/bench/tables" page results
	[ "$(grep -c '^| [12] | [0-9]* | [0-9]* ms | [0-9]* ms | 0\.[0-9]' page)" -ge 2 ]
	fails 1 'record: ERROR: none: no such folder' "$top/bench/record" --results none
	fails 1 "record: ERROR: cannot write in '/proc'" "$top/bench/record" --results /proc
}

@test "record: ended by a signal, it leaves nothing behind" {
	mkdir results tmp
	export BUILD
	TMPDIR=$PWD/tmp "$top/bench/record" --quick --results results 2>log 3>&- &
	pid=$!
	wait_until 60 eval '[ -e tmp/dllm.*/new/memory.json ]'
	ls tmp/dllm.*/tiny-Q4_K_M.gguf
	kill "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 143 ]
	[ -z "$(ls tmp)" ]
	[ -z "$(ls -A results)" ]
}
