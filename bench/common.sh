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

# A temporary folder, $dir, that goes when the script ends however it ends; and
# with it the command that run_child has started.
temporary() {
	dir=$(mktemp -d "${TMPDIR:-/tmp}/dllm.XXXXXX")
	child=
	trap 'rm -rf "$dir"' EXIT
	trap 'end_child 129' HUP
	trap 'end_child 130' INT
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
	(cd "$top" && machine "bench/$(basename "$self")" "$@")
}

# A finished file to where it shall be: there at once, or not at all.
publish() { # FILE DESTINATION
	case $2 in
	'') cat "$1" ;;
	*)
		if [ -e "$2" ] && [ ! -f "$2" ]; then
			cat "$1" >"$2"
		else
			{ cp "$1" "$2.$$" && mv "$2.$$" "$2"; } 2>/dev/null || {
				rm -f "$2.$$"
				fail "cannot write '$2'"
			}
		fi
		;;
	esac
}

count() { # OPTION VALUE: a number from 1 up
	case $2 in
	'' | 0* | *[!0-9]* | ??????????*)
		misuse "--$1: '$2' is not a number from 1 to 999999999" ;;
	esac
}
