#!/usr/bin/env bats
# Rules that hold for the tree as a whole.
# shellcheck disable=SC2016,SC2034,SC2154 # literal text; set for bats or by run

load helpers
BATS_TEST_TIMEOUT=300

setup() {
	cd "$top" || return
}

# tools: all programs of the build, but the wrapper
tools() {
	local path
	for path in tools/*.c; do
		basename "$path" .c
	done
}

@test "lint: only the folders and files that belong at the top" {
	# In a checkout what is tracked counts, not what a user left there.
	for name in $(git ls-files 2>/dev/null | cut -d / -f 1 | sort -u |
	    grep . || ls); do
		case $name in
		.ci | .clang-format | .gitignore) ;;
		Makefile | README.md | LICENSE | config.mk) ;;
		tools | lib | kernels | pipelines | tests | bench | man) ;;
		build) ;;
		*) printf 'does not belong here: %s\n' "$name" >&2; false ;;
		esac
	done
}

@test "lint: shellcheck is silent" {
	{
		grep -rlE '^#!/bin/sh|^#!/usr/bin/env bats' tools lib kernels \
		    pipelines tests bench .ci --include='*' --exclude-dir=golden
	} >"$BATS_TEST_TMPDIR/scripts"
	grep -q '^pipelines/generate.sh$' "$BATS_TEST_TMPDIR/scripts"
	grep -q '^tools/dllm$' "$BATS_TEST_TMPDIR/scripts"
	xargs shellcheck <"$BATS_TEST_TMPDIR/scripts"
	shellcheck -s bash -e SC2034 tests/helpers.bash
}

@test "lint: no check in a test is one that cannot fail" {
	# set -e looks over what stands before &&, and over what ! turns round.
	run grep -nE '^\s+(! |\[.*\] && [^|]*$)' tests/*.bats
	printf '%s\n' "$output" | grep -vE '! echo .* >&5|&& REPLY=' \
	    >"$BATS_TEST_TMPDIR/bad" || true
	cat "$BATS_TEST_TMPDIR/bad" >&2
	[ -z "$(sed '/^$/d' "$BATS_TEST_TMPDIR/bad")" ]
}

@test "lint: pipelines are short" {
	for path in pipelines/*.sh; do
		[ "$(wc -l <"$path")" -lt 40 ]
		[ -x "$path" ]
	done
}

@test "lint: mandoc is silent, every tool has a page" {
	mandoc -T lint -W warning man/*
	for tool in dllm $(tools); do
		[ -f "man/$tool.1" ]
	done
}

@test "lint: every header compiles alone" {
	for path in lib/*.h kernels/*.h tools/*.h tests/*.h bench/*.h; do
		# Without a guard it is a piece of one source, no module.
		grep -q '^#ifndef [A-Z0-9_]*_H$' "$path" || continue
		# Intrinsics are of one architecture.
		case $(uname -m) in
		x86_64) [[ $path != *_neon.h ]] ;;
		*) [[ $path != *_avx*.h && $path != *x86.h ]] ;;
		esac || continue
		printf '#include "%s"\n' "$path" >"$BATS_TEST_TMPDIR/one.c"
		eval "$(cat "$BUILD/flags")" -I. -Wno-unused-function -Wno-psabi -Werror \
		    -DPROG='\"x\"' -DUSAGE='\"x\"' -fsyntax-only \
		    '"$BATS_TEST_TMPDIR/one.c"' || {
			echo "$path" >&2
			false
		}
	done
}

@test "lint: options in --help and in the man page are the same" {
	for tool in $(tools); do
		"$tool" --help | sed -n 's/^  --\([a-z0-9-]*\).*/\1/p' |
			sort >"$BATS_TEST_TMPDIR/help"
		sed -n 's/\\-/-/g; /^\.It Fl/p' "man/$tool.1" |
			grep -o 'Fl -[a-z0-9-]*' | sed 's/^Fl -//' |
			sort >"$BATS_TEST_TMPDIR/page"
		diff "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/page" >&2 || {
			echo "$tool" >&2
			false
		}
		[ -s "$BATS_TEST_TMPDIR/help" ]
	done
	for command in run batch chat infill score tokenize logits; do
		dllm "$command" --help
	done | grep '^  --' | sed 's/  [^ -].*//' | grep -o -- '--*[a-z0-9-]*' |
		sort -u >"$BATS_TEST_TMPDIR/help"
	sed -n 's/\\-/-/g; /^\.It Fl/p' man/dllm.1 | grep -o 'Fl [a-z0-9-]*' |
		sed 's/^Fl /-/' | sort -u >"$BATS_TEST_TMPDIR/page"
	diff "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/page" >&2
	grep -q -- '--prompt-masks' "$BATS_TEST_TMPDIR/help"
}

@test "lint: --version and --help of every tool" {
	version=$(dllm --version)
	version=${version#dllm }
	for tool in dllm $(tools); do
		works "$tool" --version
		[ "$output" = "$tool $version" ]
		works "$tool" --help
		[ "${output#usage: "$tool" }" != "$output" ]
		run --separate-stderr sh -c '"$1" --help >/dev/full' - "$tool"
		[ "$status" -ne 0 ]
	done
}

@test "lint: an unknown option is a usage error of every tool" {
	for tool in dllm $(tools); do
		run --separate-stderr "$tool" --zzzzzz
		[ "$status" -eq 2 ]
		[ -z "$output" ]
		[ "${stderr_lines[0]}" = "$tool: ERROR: unknown option '--zzzzzz'" ]
		[[ ${stderr_lines[1]} = "$tool: usage: $tool "* ]]
		[ "${#stderr_lines[@]}" -eq 2 ]
	done
}

@test "lint: no function of libm but fmaf, sqrt and rounding" {
	nm -u "$BUILD/libdllm.a" | sed -n 's/^ *U //p' | sort -u \
	    >"$BATS_TEST_TMPDIR/used"
	grep -q '^memcpy$' "$BATS_TEST_TMPDIR/used"
	run grep -xE '(a?(sin|cos|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p|b)?|pow|pow10|cbrt|hypot|erfc?|[lt]gamma|fma|fmod|remainder|j[01n]|y[01n])[fl]?' \
	    "$BATS_TEST_TMPDIR/used"
	printf '%s\n' "$output" | grep -vx 'fmaf' >"$BATS_TEST_TMPDIR/bad" || true
	sed '/^$/d' "$BATS_TEST_TMPDIR/bad" >&2
	[ -z "$(sed '/^$/d' "$BATS_TEST_TMPDIR/bad")" ]
}

@test "lint: tools need nothing but libc, libm and threads" {
	allowed='libc\.|libm\.|libpthread\.|ld-linux'
	case $BUILD in
	*/sanitize) allowed="$allowed|libasan\.|libubsan\.|libgcc_s\." ;;
	esac
	for tool in $(tools); do
		readelf -d "$BUILD/bin/$tool" |
			sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' \
			    >"$BATS_TEST_TMPDIR/needed"
		grep -q '^libc\.' "$BATS_TEST_TMPDIR/needed"
		run grep -vE "^($allowed)" "$BATS_TEST_TMPDIR/needed"
		printf '%s: %s\n' "$tool" "$output" >&2
		[ -z "$output" ]
	done
}

@test "lint: no compiler option that changes numbers" {
	run grep -nE 'fast-math|-Ofast|ffp-contract=(fast|on)|march=native' \
	    Makefile "$BUILD/flags"
	[ "$status" -eq 1 ]
	grep -q -- '-ffp-contract=off' "$BUILD/flags"
}

@test "lint: files are small" {
	run find tests lib bench -type f -size +6144k
	[ -z "$output" ]
}
