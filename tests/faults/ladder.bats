#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Each write of state in turn is the one that fails, or the last thing before fettle is killed, or the first of many
# that fail: the database is whole, resume comes to the same end, nothing is measured twice and no job is left. A
# sample of the writes here, each third of them with LONG=1 (STRIDE=1: each; an hour). What the agent writes is made up by scheduler fake within the
# same process, through the same files; the agent itself is linked statically, where no library can be put before
# libc: machine.bats fills its disk, resume.bats kills it.

load common
setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	export FETTLE=${FETTLE:-$PWD/build/fettle} CALLS="write fsync fdatasync rename open mkdir ftruncate unlink"
	export RECIPE=$PWD/tests/fixtures/recipes/fake-brief.lua TRUTH=$BATS_FILE_TMPDIR/truth.json
	export REFERENCE=$BATS_FILE_TMPDIR/reference
	build_failnth
	echo '{"fixed": true, "sd_run": 0.005, "effects": {"A=1": 0.06}}' >"$TRUTH"
	disturbed "$REFERENCE" KILL 1000000000 "$CALLS"
	results "$REFERENCE" >"$REFERENCE.txt"
	[ "$(wc -l <"$REFERENCE.txt")" -gt 20 ]
	[ "$(jobs_of "$REFERENCE")" -eq 8 ]
}
setup() {
	W=$BATS_TEST_TMPDIR/w
	declare -gA tried ended
}

# disturbed WORKSPACE WITH NTH CALLS [LAST]: a campaign; its errors are in WORKSPACE.err, the call that failed and, at
# the end, their number in WORKSPACE.told
disturbed() {
	FAIL_WITH=$2 FAIL_NTH=$3 FAIL_CALLS=$4 FAIL_LAST=${5:-0} FAIL_PATH="$1/*" FAIL_TOLD=$1.told \
		LD_PRELOAD=$BATS_FILE_TMPDIR/failnth.so \
		"$FETTLE" run -q -s fake --fake "$TRUTH" -w "$1" "$RECIPE" >"$1.out" 2>"$1.err"
}

jobs_of() { jq '.jobs | length' "$1/blocks/.fake.json"; }
ask() { sqlite3 "$W/fettle.db" "$1"; }

# rung WITH NTH CALLS [LAST]
rung() {
	rm -rf "$W" "$W".*
	rc=0
	disturbed "$W" "$@" || rc=$?
	echo "$1 at $2 ($(head -n 1 "$W.told")): $rc $(cat "$W.err")"
	case $1:$rc in
	*:0) ;; # a directory that the next one made, a report, what is tried again
	KILL:137 | ENOMEM:134) ;;
	ENOMEM:*) grep -q ' error: ' "$W.err" ;; # SQLite's own memory is no reason to abort
	*:4) grep -qE "^fettle run: error: .*$W" "$W.err" ;;
	*) false ;;
	esac || return 1
	[ ! -s "$W/fettle.db" ] || [ "$(ask 'PRAGMA integrity_check')" = ok ] || return 1
	local args=(run -s fake "$RECIPE")
	[ "$(ask 'SELECT count(*) FROM campaign' 2>/dev/null)" != 1 ] || args=(resume)
	"$FETTLE" "${args[@]}" -q --fake "$TRUTH" -w "$W" >"$W.out" 2>&1 || { cat "$W.out" && return 1; }
	same_as_reference "$W" || return 1
	# An attempt that could not be submitted, or whose agent could not write, is run again; after a kill none is.
	again=$(ask "SELECT count(*) FROM attempt WHERE state IN ('lost', 'void') AND reason LIKE '%' || dir || '%'
		OR state IN ('lost', 'void') AND reason LIKE '%/.fake.json: %' OR state = 'void' AND reason LIKE 'cannot sync %'
		OR state = 'lost' AND reason LIKE 'job f% is ended (failed) and left no done.json%'")
	[ "$1" != KILL ] || [ "$again" = 0 ] || return 1
	[ "$(ask 'SELECT count(*) FROM attempt')" = $((8 + again)) ] || return 1
	jobs=$(jobs_of "$W")
	[ "$jobs" -ge 8 ] && [ "$jobs" -le $((8 + again)) ] || return 1
	[ -s "$W/reports/campaign-1.md" ] || return 1
	tried[$1]=$((${tried[$1]:-0} + 1))
	[ "$rc" -eq 0 ] || ended[$1]=$((${ended[$1]:-0} + 1))
}

# How many of each kind, and how many of them ended the program.
say_tried() {
	for with in "${!tried[@]}"; do echo "# $with: ${tried[$with]} tried, ${ended[$with]:-0} of them ended fettle" >&3; done
}

# rungs OF HOW_MANY: which of them, from 1
rungs() {
	if [ -n "$LONG" ]; then seq 1 "${STRIDE:-3}" "$1"; else for i in $(seq "$2"); do echo $((i * $1 / ($2 + 1))); done; fi
}
writes() { sed -n 's/^seen //p' "$REFERENCE.told"; }

@test "killed before the n-th write of state" {
	for n in $(rungs "$(writes)" 4); do rung KILL "$n" "$CALLS"; done
	[ -z "$LONG" ] || say_tried
}

@test "the n-th write of state fails, or each from it on" {
	local with=(ENOSPC EIO EROFS ENOSPC) last=(0 0 1000000 1000000) i=0
	for n in $(rungs "$(writes)" 4); do
		rung "${with[i % 4]}" "$n" "$CALLS" "${last[i % 4]}"
		i=$((i + 1))
	done
	[ -z "$LONG" ] || say_tried
}

@test "no memory, once: what was stored stays stored" {
	disturbed "$W" KILL 1000000000 malloc
	total=$(sed -n 's/^seen //p' "$W.told")
	[ "$total" -gt 10000 ]
	many=3
	[ -z "$LONG" ] || many=200
	for i in $(seq "$many"); do rung ENOMEM $((i * total / (many + 1))) malloc; done
	[ "${ended[ENOMEM]:-0}" -ge 1 ]
	[ -z "$LONG" ] || say_tried
}
