# Shared by the scripts in bench/, which set $prog and $usage, then source it.
# shellcheck shell=sh disable=SC2154 # $prog, $usage and $self are the script's

self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
top=${self%/*/*}
build=${BUILD:-$top/build}
case $build in
/*) ;;
*) build=$PWD/$build ;;
esac
PATH=$build/bin:$build/bench:$PATH
LC_ALL=C
export LC_ALL
unset DLLM_USAGE

fail() {
	printf '%s: ERROR: %s\n' "$prog" "$*" >&2
	exit 1
}

misuse() {
	printf '%s: ERROR: %s\n%s: usage: %s\n' "$prog" "$*" "$prog" "$usage" >&2
	exit 2
}

for argument; do
	[ "$argument" != --help ] || { echo "usage: $usage"; exit; }
done

# A temporary folder, $dir, that goes when the script ends however it ends; and
# with it $new, where that is set, and the command that run_child has started.
temporary() {
	dir=$(mktemp -d "${TMPDIR:-/tmp}/dllm.XXXXXX" 2>/dev/null) ||
		fail "cannot create a folder in '${TMPDIR:-/tmp}'"
	child='' new=''
	trap 'rm -rf "$dir" ${new:+"$new"}' EXIT
	trap 'end_child 129' HUP
	trap 'end_child 130' INT
	trap 'end_child 131' QUIT
	trap 'end_child 141' PIPE
	trap 'end_child 143' TERM
}

end_child() { # STATUS
	[ -z "$child" ] || {
		kill "$child" 2>/dev/null || :
		wait "$child" 2>/dev/null || :
	}
	exit "$1"
}

# A command in the background, so that signals do not wait for its end.
run_child() { # COMMAND...
	"$@" &
	child=$!
	child_status=0
	wait "$child" || child_status=$?
	child=
	return "$child_status"
}

# For scripts that do not build what they run.
built() {
	for program in bin/dllm bench/machine; do
		[ -x "$build/$program" ] ||
			fail "$build/$program is missing: run make all bench"
	done
}

# The number or word of a member of the JSON on standard input; nothing if it
# is not there or null.
member() { # KEY
	sed -n 's/.*"'"$1"'": *"\{0,1\}\([^",}]*\).*/\1/p' |
		sed -n '/^null$/d; 1p'
}

string() { # VALUE: as a JSON string
	printf '"%s"' "$(printf '%s' "$1" | tr -d '\000-\037' |
		sed 's/\\/\\\\/g; s/"/\\"/g')"
}

# "machine":{...}, of this script and these arguments
machine_of() { # ARGUMENT...
	built
	(cd "$top" && machine "bench/$(basename "$self")" "$@")
}

# Whether an output can be written is better known before hours than after.
output_to() { # FILE: sets $output
	[ -n "$1" ] || fail "cannot create '': the name is empty"
	[ ! -d "$1" ] || fail "cannot write '$1': Is a directory"
	case $1 in
	-*) output=./$1 ;;
	*) output=$1 ;;
	esac
	if [ -e "$output" ]; then
		[ -w "$output" ]
	else
		[ -d "$(dirname "$output")" ] && [ -w "$(dirname "$output")" ]
	fi || fail "cannot write '$1'"
}

# A finished file to where it shall be: there at once, or not at all.  A file
# that is there keeps its permissions, a link remains one.
publish() { # FILE DESTINATION
	if [ -z "$2" ]; then
		{ cat "$1"; } 2>/dev/null || {
			[ $? -ne 141 ] || exit 141
			fail 'cannot write standard output'
		}
	elif [ -e "$2" ] && [ ! -f "$2" ]; then
		{ cat "$1" >"$2"; } 2>/dev/null || fail "cannot write '$2'"
	else
		to=$(readlink -f "$2") || fail "cannot write '$2'"
		new=$to.$$
		{
			{ [ ! -e "$to" ] || cp -p "$to" "$new"; } &&
				cat "$1" >"$new" && mv "$new" "$to"
		} 2>/dev/null || fail "cannot write '$2'"
	fi
}

# Options that all have values: is this one of $usage, and has it one?
option() { # OPTION [VALUE]...
	case $usage in
	*[!a-z-]"$1 "[A-Z]*) ;;
	*) misuse "unknown option '$1'" ;;
	esac
	[ $# -gt 1 ] || misuse "$1: a value is missing"
}

count() { # OPTION VALUE: a number from 1 up
	case $2 in
	'' | 0* | *[!0-9]* | ??????????*)
		misuse "--$1: '$2' is not a number from 1 to 999999999" ;;
	esac
}

list() { # OPTION VALUE: such numbers, commas between them
	printf '%s,' "$2" | tr , '\n' | while IFS= read -r number; do
		count "$1" "$number"
	done || exit
}
