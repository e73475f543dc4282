# Shared by all .bats files:  load helpers
#
# BUILD names the build folder (default: build beside tests/).  Tools are found
# through PATH, those of the build before any that is installed.

bats_require_minimum_version 1.5.0

top=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
BUILD=${BUILD:-$top/build}
case $BUILD in
/*) ;;
*) BUILD=$top/$BUILD ;;
esac
PATH=$BUILD/bin:$BUILD/tests:$PATH
golden=$top/tests/golden
models=$top/lib/models
export PATH top golden models
LC_ALL=C
export LC_ALL
unset DLLM_CPU DLLM_SHM DLLM_LOGITS_FD DLLM_USAGE

# fails STATUS MESSAGE COMMAND...: the command exits with STATUS, prints exactly
# MESSAGE (may hold newlines) on standard error and nothing on standard output.
fails() {
	local want_status=$1 want_err=$2
	shift 2
	run --separate-stderr -- "$@"
	# shellcheck disable=SC2154 # set by run
	printf '# %s\n# status %s\n# stderr: %s\n' "$*" "$status" "$stderr" >&2
	[ "$status" -eq "$want_status" ]
	[ "$stderr" = "$want_err" ]
	[ -z "$output" ]
}

# works COMMAND...: exit 0 and a silent standard error; $output is stdout.
works() {
	run --separate-stderr -- "$@"
	printf '# %s\n# status %s\n# stderr: %s\n' "$*" "$status" "$stderr" >&2
	[ "$status" -eq 0 ]
	[ -z "$stderr" ]
}

# same FILE FILE: both exist, neither is empty, the bytes are equal.
same() {
	[ -s "$1" ] && [ -s "$2" ] && cmp "$1" "$2"
}

# gone PID: the process has ended (a zombie counts as ended).
gone() {
	local state
	state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 0
	[ "$state" = Z ]
}

# wait_until SECONDS COMMAND...: poll until the command succeeds.
wait_until() {
	local n=$(($1 * 20))
	shift
	while [ "$n" -gt 0 ]; do
		"$@" && return 0
		sleep 0.05
		n=$((n - 1))
	done
	return 1
}
