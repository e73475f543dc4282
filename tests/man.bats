#!/usr/bin/env bats
# The examples in man pages and README are executed.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # literal text; set for
# bats or by run; tests are subshells

load helpers
BATS_TEST_TIMEOUT=300

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export MODEL=$models/pocket-llada-q4_k_m.gguf
}

# examples: from a page on standard input, its commands: lines that begin with
# "$ ", each with the lines it goes on in (after \ or |)
examples() {
	awk '
	more || /^ *\$ / {
		if (!more) {
			sub(/^ *\$ /, "")
			printf "\001"
		}
		print
		more = /(\\|\||&&)$/
	}'
}

# run_examples: the commands on standard input, one after the other, in an
# empty folder; each must exit 0
run_examples() {
	local command
	rm -rf scratch
	mkdir scratch
	cd scratch || return
	while IFS= read -r -d $'\001' command <&9 || [ -n "$command" ]; do
		[ -n "$command" ] || continue
		sh -c "$command" </dev/null >out 2>err 3>&- 9<&- || {
			printf 'failed: %s\n' "$command" >&2
			cat out err >&2
			return 1
		}
		rm -f out err
		printf 'ran: %s' "$command" >&2
		n=$((n + 1))
	done 9<&0
	cd ..
}

@test "man: every example works" {
	total=0
	for page in "$top"/man/*; do
		printf '%s\n' "$page" >&2
		mandoc -T ascii -O width=200 "$page" | col -bx | examples >commands
		n=0
		run_examples <commands
		case $page in
		*.1) [ "$n" -gt 0 ] ;;
		esac
		total=$((total + n))
	done
	[ "$total" -gt 20 ]
}

@test "man: an example that fails is noticed" {
	printf '$ true |\n    cat\ntext\n$ exit \\\n    3\n' | examples >commands
	n=0
	run run_examples <commands
	[ "$status" -eq 1 ]
	[[ $output = *'ran: true |'*'failed: exit'* ]]
}

# readme_blocks: the sh blocks of a README, as commands and what they print:
# \001 COMMAND \002 OUTPUT
readme_blocks() {
	awk '
	/^```/ { on = /^```sh$/; next }
	!on { next }
	more || /^\$ / {
		if (!more) {
			sub(/^\$ /, "")
			printf "\001"
		}
		print
		more = /(\\|\||&&)$/
		if (!more)
			printf "\002"
		next
	}
	{ print }'
}

# run_readme: each command exits 0; where output is shown, it is the output.  A
# line "..." stands for any lines.
run_readme() {
	local item command want got head tail
	rm -rf scratch
	mkdir scratch
	ln -s "$top/lib" "$top/pipelines" "$top/tests" scratch
	cd scratch || return
	while IFS= read -r -d $'\001' item <&9 || [ -n "$item" ]; do
		[[ $item = *$'\002'* ]] || continue
		command=${item%%$'\002'*}
		want=${item#*$'\002'}
		got=$(sh -c "$command" </dev/null 2>err 3>&- 9<&-) || {
			printf 'failed: %s\n' "$command" >&2
			cat err >&2
			return 1
		}
		rm -f err
		n=$((n + 1))
		while [[ $want = *$'\n' ]]; do want=${want%$'\n'}; done
		[ -n "$want" ] || continue
		head=$want tail=
		if [[ $'\n'$want$'\n' = *$'\n...\n'* ]]; then
			head=${want%%...*}
			tail=${want#*...}
			[[ $got = "$head"*"$tail" ]]
		else
			[ "$got" = "$want" ]
		fi || {
			printf 'command: %s\nprinted:\n%s\n' "$command" "$got" >&2
			return 1
		}
	done 9<&0
	cd ..
}

@test "README: every command works and prints what is shown" {
	readme_blocks <"$top/README.md" >commands
	n=0
	run_readme <commands
	[ "$n" -gt 5 ]
}

@test "README: a wrong output is noticed" {
	printf '```sh\n$ echo a\na\n$ seq 3\n1\n...\n$ echo b\nc\n```\n' |
		readme_blocks >commands
	n=0
	run run_readme <commands
	[ "$status" -eq 1 ]
	[[ $output = $'command: echo b\n'* ]]
}
