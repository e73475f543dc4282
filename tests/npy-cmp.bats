#!/usr/bin/env bats
# npy-cmp: what it prints, its exit status, and what it refuses.
# shellcheck disable=SC2034,SC2154 # set for bats or by run

load helpers
BATS_TEST_TIMEOUT=60

# npy FILE SHAPE HEX: an f4 array; HEX its data, each number little-endian
npy() {
	local header="{'descr': '<f4', 'fortran_order': False, 'shape': $2, }"
	{
		printf '\223NUMPY\001\000\166\000%-117s\n' "$header"
		# shellcheck disable=SC2059 # octal escapes are the format
		printf "$(printf '%s' "$3" | sed 's/../\\x&/g')"
	} >"$1"
}

one=0000803f two=00000040 three=00004040 nan=0000c07f

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	npy a.npy '(2, 3)' "$one$two$three$three$two$one"
	npy b.npy '(2, 3)' "$one$two$three$three$three$one"
	npy nan.npy '(2, 3)' "$one$two$three$three$nan$one"
}

# differs COMMAND...: exit 1 and a silent standard error
differs() {
	run --separate-stderr -- "$@"
	printf '# %s\n# status %s\n# stderr: %s\n' "$*" "$status" "$stderr" >&2
	[ "$status" -eq 1 ]
	[ -z "$stderr" ]
}

usage='npy-cmp: usage: npy-cmp [options] FILE REFERENCE'

@test "npy-cmp: equal arrays" {
	works npy-cmp a.npy a.npy
	[ "$output" = "shape 2,3
rows 2
differing 0 of 6
nan 0
max-abs 0
rel-l2 0
row-rel-l2 0 at row 0
cosine-median 1
cosine-worst 1 at row 0
argmax 2 of 2
argmax-clear 2 of 2
top5 2 of 2, 3 in common
result same" ]
}

@test "npy-cmp: without a tolerance any difference is one" {
	differs npy-cmp a.npy b.npy
	[ "$output" = "shape 2,3
rows 2
differing 1 of 6
nan 0
max-abs 1 at 1,1: 2, reference 3
rel-l2 0.174077656
row-rel-l2 0.229415734 at row 1
cosine-median 0.981022943
cosine-worst 0.981022943 at row 1
argmax 2 of 2
argmax-clear 0 of 0
top5 2 of 2, 3 in common
result differ" ]
}

@test "npy-cmp: every tolerance, held and exceeded" {
	while read -r option held exceeded name; do
		works npy-cmp "$option" "$held" a.npy b.npy
		[ "${lines[-1]}" = 'result same' ]
		differs npy-cmp "$option" "$exceeded" a.npy b.npy
		[ "${lines[-1]}" = "result differ: $name" ]
	done <<-END
		--max-abs 1 0.999 max-abs
		--max-rel-l2 0.175 0.174 rel-l2
		--max-row-rel-l2 0.23 0.229 row-rel-l2
		--min-cosine 0.981 0.982 cosine-worst
	END
	npy c.npy '(2, 3)' "$one$two$three$two$three$one"
	works npy-cmp --argmax clear a.npy c.npy
	differs npy-cmp --argmax all --max-abs 0 a.npy c.npy
	[ "${lines[9]}" = 'argmax 1 of 2, not row 1' ]
	[ "${lines[-1]}" = 'result differ: max-abs, argmax' ]
}

@test "npy-cmp: no tolerance lets a NaN pass" {
	for reference in a.npy nan.npy; do
		differs npy-cmp nan.npy "$reference"
		differs npy-cmp --max-abs 1e30 nan.npy "$reference"
		[ "${lines[-1]}" = 'result differ: max-abs' ]
		differs npy-cmp --argmax clear nan.npy "$reference"
		differs npy-cmp --max-rel-l2 1e30 nan.npy "$reference"
		differs npy-cmp --max-row-rel-l2 1e30 nan.npy "$reference"
		differs npy-cmp --min-cosine -1 nan.npy "$reference"
	done
	[ "${lines[3]}" = 'nan 1' ]
	[[ ${lines[4]} = 'max-abs nan at 1,1: nan, reference nan' ]]
}

@test "npy-cmp: --rows" {
	works npy-cmp --rows 0 a.npy b.npy
	[ "${lines[1]}" = 'rows 1' ]
	differs npy-cmp --rows 1:1 a.npy b.npy
	[ "${lines[4]}" = 'max-abs 1 at 1,1: 2, reference 3' ]
	differs npy-cmp --rows 0:2 a.npy b.npy
	fails 2 'npy-cmp: ERROR: a.npy, b.npy: rows 1:2: the array has 2' \
	    npy-cmp --rows 1:2 a.npy b.npy
	run --separate-stderr npy-cmp --rows x a.npy b.npy
	[ "$status" -eq 2 ]
	[ -z "$output" ]
	[[ ${stderr_lines[0]} = "npy-cmp: ERROR: --rows 'x': "* ]]
}

@test "npy-cmp: --json and --quiet" {
	differs npy-cmp --json --max-abs 0.5 a.npy b.npy
	[ "${#lines[@]}" -eq 1 ]
	[[ $output = '{"shape":[2,3],"rows":2,"width":3,"differing":1,"nan":0,"max_abs":1,"max_abs_index":[1,1],"rel_l2":0.174077'*',"exceeded":["max-abs"],"same":false}' ]]
	differs npy-cmp --json nan.npy b.npy
	[[ $output = *'"max_abs":null,'* ]]
	differs npy-cmp --quiet a.npy b.npy
	[ -z "$output" ]
	works npy-cmp --quiet a.npy a.npy
	[ -z "$output" ]
	fails 2 "npy-cmp: ERROR: --json and --quiet exclude each other
$usage" npy-cmp --json --quiet a.npy a.npy
}

@test "npy-cmp: trouble is status 2" {
	fails 2 "npy-cmp: ERROR: two files are needed
$usage" npy-cmp a.npy
	fails 2 "npy-cmp: ERROR: two files are needed
$usage" npy-cmp a.npy a.npy a.npy
	fails 2 "npy-cmp: ERROR: cannot open 'none': No such file or directory" \
	    npy-cmp a.npy none
	fails 2 'npy-cmp: ERROR: .: not a .npy file' npy-cmp . a.npy
	head -c 140 a.npy >short.npy
	fails 2 'npy-cmp: ERROR: short.npy: the .npy data is cut short' \
	    npy-cmp a.npy short.npy
	npy c.npy '(3, 2)' "$one$two$three$three$two$one"
	fails 2 'npy-cmp: ERROR: a.npy, c.npy: the shapes differ: (2, 3) and (3, 2)' \
	    npy-cmp a.npy c.npy
	run --separate-stderr sh -c 'npy-cmp a.npy a.npy >/dev/full'
	[ "$status" -eq 2 ]
	[ "$stderr" = 'npy-cmp: ERROR: cannot write standard output: No space left on device' ]
}
