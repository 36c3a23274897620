#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Each write of state in turn is the one that fails, or the last thing before fettle is killed, or the first of many
# that fail, and so is each read: the database is whole, resume comes to the same end, nothing is measured twice and
# no job is left. A sample of them here, each third of them with LONG=1 (STRIDE=1: each; an hour). What the agent writes
# is made up by scheduler fake within the same process, through the same files; the agent itself is linked statically, where no library can be put before
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
	# An attempt that could not be submitted, or whose agent could not write, is run again. After a kill none is;
	# what could not be read is, if that was on the way to its agent.
	# What SQLite or a report's reader tries again is no harm, nor is an agent that could not read its block.json; of
	# results each read counts.
	[ "$3:$rc" != read:0 ] || [[ $(grep -v '/block.json$' "$W.told" | head -n 1) != *"/w/blocks/"* ]] || return 1
	again=$(ask "SELECT count(*) FROM attempt WHERE state IN ('lost', 'void') AND reason LIKE '%' || dir || '%'
		OR state IN ('lost', 'void') AND reason LIKE '%/.fake.json: %' OR state = 'void' AND reason LIKE 'cannot sync %'
		OR state = 'lost' AND reason LIKE 'job f% is ended (failed) and left no done.json%'")
	[ "$1" != KILL ] || [ "$again" = 0 ] || return 1
	[ "$3" != read ] || [ "$(ask "SELECT count(*) FROM attempt WHERE state = 'void' AND reason NOT LIKE 'cannot read %/block.json: %'")" = 0 ] || return 1
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

@test "the n-th read of state fails, or each from it on: what was measured is read again, not run again" {
	local last=(0 1000000) i=0
	disturbed "$W" KILL 1000000000 read
	for n in $(rungs "$(sed -n 's/^seen //p' "$W.told")" 2); do
		rung EIO "$n" read "${last[i % 2]}"
		i=$((i + 1))
	done
	[ "${ended[EIO]}" -ge 1 ]
	[ -z "$LONG" ] || say_tried
}

# cannot_read FILE COMMAND...: each read of FILE fails, and the command says so
cannot_read() {
	FAIL_WITH=EIO FAIL_NTH=1 FAIL_LAST=1000000 FAIL_CALLS=read FAIL_PATH="*/$1" LD_PRELOAD=$BATS_FILE_TMPDIR/failnth.so \
		run "$FETTLE" "${@:2}"
	echo "$output"
	[ "$status" -eq 4 ]
	[[ ${lines[0]} == "fettle $2"*": error: "*"$1: "*"nput/output error" || ${lines[0]} == *"$1: "*": disk I/O error; "* ]]
}

@test "a file that a command is given and cannot be read is named" {
	cd "$BATS_TEST_TMPDIR"
	mkdir logs
	printf 'step 1 loss 2.5\n' >logs/a.log
	cp logs/a.log b.log
	cp "$RECIPE" c.lua
	printf '#!/bin/sh\n#SBATCH -N1\nsrun ./train\n' >train.sbatch
	cannot_read b.log probe b.log
	cannot_read a.log diagnose logs b.log
	cannot_read c.lua check c.lua
	cannot_read c.lua run -w "$W" c.lua
	cannot_read train.sbatch check train.sbatch
	cannot_read train.sbatch init train.sbatch
	cannot_read b.log history import -w "$W" b.log
	cannot_read fettle.db status -w "$REFERENCE"
	cannot_read fettle.db report -w "$REFERENCE"
}

@test "an attempt that stays unreadable: its directory moved away, the block runs again" {
	FAIL_WITH=EIO FAIL_NTH=1 FAIL_LAST=1000000 FAIL_CALLS=read FAIL_PATH="$W/blocks/2.1/t00.json" \
		LD_PRELOAD=$BATS_FILE_TMPDIR/failnth.so run "$FETTLE" run -q -s fake --fake "$TRUTH" -w "$W" "$RECIPE"
	echo "$output"
	[ "$status" -eq 4 ]
	[[ $output == *"error: cannot read $W/blocks/2.1/t00.json: Input/output error; if it stays so, move $W/blocks/2.1 away: its block then runs again"* ]]
	mv "$W/blocks/2.1" "$BATS_TEST_TMPDIR/away"
	"$FETTLE" resume -q --fake "$TRUTH" -w "$W" >"$W.out"
	same_as_reference "$W"
	[ "$(ask 'SELECT group_concat(number || state) FROM attempt WHERE block = 2')" = 1lost,2valid ]
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
