#!/usr/bin/env bats
# The test runner itself: a test that fails must make the run fail.
# shellcheck disable=SC2016,SC2034,SC2154 # literal text; set for bats, by run

load helpers
BATS_TEST_TIMEOUT=300

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# program NAME BODY: a unit test program that prints TAP
program() {
	printf '#!/bin/sh\n%s\n' "$2" >"$BATS_TEST_TMPDIR/$1"
	chmod +x "$BATS_TEST_TMPDIR/$1"
}

# run_tests FILE...: the runner, without what bats put into the environment;
# in its PATH bats has a folder of its own with another program called bats.
run_tests() {
	local path
	path=$(printf '%s' ":$PATH" | sed 's/:[^:]*bats-core[^:]*//g')
	run env -i PATH="${path#:}" TMPDIR="$PWD" EMULATOR="${EMULATOR-}" \
	    "$top/tests/run" "$@"
}

# last_line STATUS TEXT: of the tests/run just run
last_line() {
	printf '%s\n' "$output" >&2
	[ "$status" -eq "$1" ]
	[ "${lines[${#lines[@]} - 1]}" = "$2" ]
}

@test "tests/run: passes and skips are counted" {
	program unit 'echo "ok 1 - a"; echo "ok 2 - b # SKIP why"; echo 1..2'
	printf '@test "good" { true; }\n@test "skipped" { skip why; }\n' >a.bats
	run_tests "$PWD/unit" "$PWD/a.bats"
	last_line 0 '2 passed, 0 failed, 2 skipped'
	# by name and reason
	grep -qx '    b # SKIP why' <<<"$output"
	grep -qx '    skipped # skip why' <<<"$output"
}

@test "tests/run: a failing bats test fails the run and is shown in full" {
	printf '@test "good" { true; }\n@test "bad" { echo reason >&2; false; }\n' >a.bats
	run_tests "$PWD/a.bats"
	last_line 1 '1 passed, 1 failed, 0 skipped'
	[[ $output = *'not ok 2 bad'* ]]
	[[ $output = *'# reason'* ]]
}

@test "tests/run: a failing unit test fails the run and is shown in full" {
	program unit 'echo "ok 1 - a"; echo "not ok 2 - b"; echo "# got: 7"; echo 1..2; exit 1'
	program good 'echo "ok 1 - a"; echo 1..1'
	run_tests "$PWD/unit" "$PWD/good"
	last_line 1 '2 passed, 1 failed, 0 skipped'
	[[ $output = *'not ok 2 - b'*'# got: 7'* ]]
}

@test "tests/run: EMULATOR runs unit tests, not bats" {
	program unit 'echo "not ok 1 - a"; echo 1..1; exit 1'
	program other '[ "$1" = -x ] && exec "$0-$(basename "$2")"'
	program other-unit 'echo "ok 1 - a"; echo 1..1'
	printf '@test "good" { true; }\n' >a.bats
	export EMULATOR="$PWD/other -x"
	run_tests "$PWD/unit" "$PWD/a.bats"
	last_line 0 '2 passed, 0 failed, 0 skipped'
}

@test "tests/run: a crash, a missing result and an empty test are failures" {
	program crash 'echo "ok 1 - a"; kill -SEGV $$'
	run_tests "$PWD/crash"
	last_line 1 '1 passed, 1 failed, 0 skipped'
	program short 'echo 1..3; echo "ok 1 - a"'
	run_tests "$PWD/short"
	last_line 1 '1 passed, 2 failed, 0 skipped'
	program empty 'exit 0'
	run_tests "$PWD/empty"
	last_line 1 '0 passed, 1 failed, 0 skipped'
	program none 'echo 1..0'
	run_tests "$PWD/none"
	last_line 1 '0 passed, 1 failed, 0 skipped'
	program lies 'echo "ok 1 - a"; echo 1..1; exit 1'
	run_tests "$PWD/lies"
	last_line 1 '1 passed, 1 failed, 0 skipped'
	run_tests "$PWD/missing"
	last_line 1 '0 passed, 1 failed, 0 skipped'
}

@test "tests/need: a missing program is named" {
	mkdir bin
	ln -s "$(command -v sh)" bin/sh
	ln -s "$(command -v tr)" bin/tr
	fails 1 "the tests need these packages, please install them: bats mandoc
on Debian or Ubuntu:  sudo apt-get install bats mandoc" \
	    env -i PATH="$PWD/bin" "$PWD/bin/sh" "$top/tests/need" sh bats mandoc
	fails 1 "the tests need these packages, please install them: gcc-x libc-x qemu
on Debian or Ubuntu:  sudo apt-get install gcc-x libc-x qemu" \
	    env -i PATH="$PWD/bin" "$PWD/bin/sh" "$top/tests/need" sh:dash \
	    x-gcc:gcc-x,libc-x qemu-x:qemu
	works env -i PATH="$PWD/bin" "$PWD/bin/sh" "$top/tests/need" sh
}
