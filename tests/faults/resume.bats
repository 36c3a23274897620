#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A campaign that is killed at any moment and resumed ends like one that was not: same slots,
# counts, states and verdicts, no attempt twice, no process left. The workload's metrics are a
# fixed function of block, slot and arm, so every figure must agree.

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	export FETTLE=${FETTLE:-$PWD/build/fettle}
	export PATH=${FETTLE_BUILD:-$PWD/build/release}/tests/workloads:$PATH
	export RECIPE=$PWD/tests/fixtures/recipes/planted-fixed.lua BRIEF=$PWD/tests/fixtures/recipes/planted-brief.lua
	cc -D_GNU_SOURCE -shared -fPIC -o "$BATS_FILE_TMPDIR/failnth.so" tests/faults/failnth.c -ldl
	run_to_end "$BATS_FILE_TMPDIR/reference"
	facts "$BATS_FILE_TMPDIR/reference" >"$BATS_FILE_TMPDIR/reference.txt"
	[ "$(wc -l <"$BATS_FILE_TMPDIR/reference.txt")" -gt 40 ]
}

run_to_end() { "$FETTLE" run -q -w "$1" "$RECIPE" >"$1.out" 2>&1; }

# Everything that must not depend on when the orchestrator lived: no times, no job ids.
facts() {
	sqlite3 "$1/fettle.db" "
	SELECT 'stage', s.seq, s.kind, s.round, s.planned_blocks, s.note FROM stage s ORDER BY s.seq;
	SELECT 'attempt', s.seq, b.idx, a.number, a.state FROM attempt a JOIN block b ON b.id = a.block
	  JOIN stage s ON s.id = b.stage ORDER BY s.seq, b.idx, a.number;
	SELECT 'trial', s.seq, b.idx, t.slot, r.label, t.kind, t.state FROM trial t JOIN attempt a ON a.id = t.attempt
	  JOIN block b ON b.id = a.block JOIN stage s ON s.id = b.stage JOIN arm r ON r.id = t.arm
	  ORDER BY s.seq, b.idx, a.number, t.slot;
	SELECT 'verdict', v.stage, v.look, v.n, v.outcome, round(v.est, 9), round(v.lo, 9), round(v.hi, 9), v.inputs_hash
	  FROM verdict v ORDER BY v.id;
	SELECT 'hypothesis', h.knob, h.value, h.state, h.reason FROM hypothesis h ORDER BY h.id;
	SELECT 'fix', f.state, round(f.est, 9), f.n FROM fix f;
	SELECT 'campaign', state FROM campaign;"
}

same_as_reference() {
	facts "$1" >"$1.txt"
	diff "$BATS_FILE_TMPDIR/reference.txt" "$1.txt"
}

# By the trial directory in their environment: other campaigns on this machine are not ours.
nothing_left() {
	for _ in $(seq 600); do # an agent that lost its claim, or was cancelled, needs a moment to end
		pgrep -f "fettle-agent $1/blocks" || grep -lzs "^FETTLE_TRIAL_DIR=$1/" /proc/[0-9]*/environ || return 0
		sleep 0.1
	done
	return 1
}

@test "ten kills at different moments, each resumed" {
	w=$BATS_TEST_TMPDIR/w
	# all ten together are a third of what the campaign takes at least; nothing runs while the test itself is slow
	for ms in 40 350 90 610 170 820 60 100 240 500 none; do
		args=(resume -q -w "$w")
		[ "$(sqlite3 "$w/fettle.db" 'SELECT count(*) FROM campaign' 2>/dev/null)" = 1 ] ||
			{ rm -rf "$w"; args=(run -q -w "$w" "$RECIPE"); }
		rc=0
		if [ $ms = none ]; then
			"$FETTLE" "${args[@]}" >"$w.out" 2>&1 || rc=$?
			[ $rc -eq 0 ]
		else
			timeout --foreground -s KILL "$(printf '0.%03d' $ms)" "$FETTLE" "${args[@]}" >"$w.out" 2>&1 || rc=$?
			[ $rc -eq 137 ]
		fi
	done
	same_as_reference "$w"
	nothing_left "$w"
}

@test "killed before its n-th sync or rename, n growing, until it gets through" {
	w=$BATS_TEST_TMPDIR/w
	n=1
	killed=0
	rc=137
	while [ $rc -eq 137 ]; do
		if [ -e "$w/fettle.db" ] && [ "$(sqlite3 "$w/fettle.db" 'SELECT count(*) FROM campaign' 2>/dev/null)" = 1 ]; then
			set -- resume -q -w "$w"
		else
			set -- run -q -w "$w" "$RECIPE"
		fi
		rc=0
		FAIL_NTH=$n LD_PRELOAD=$BATS_FILE_TMPDIR/failnth.so "$FETTLE" "$@" >"$w.out" 2>&1 || rc=$?
		[ $rc -eq 137 ] && killed=$((killed + 1))
		n=$((n + 1))
		[ $n -lt 200 ]
	done
	[ $rc -eq 0 ]
	[ $killed -ge 10 ]
	same_as_reference "$w"
	nothing_left "$w"
}

@test "the agent killed in mid-block: the attempt is lost, run again, and nothing is counted twice" {
	w=$BATS_TEST_TMPDIR/w
	"$FETTLE" run -q -w "$w" "$BRIEF" >"$w.out" 2>&1 &
	pid=$!
	for _ in $(seq 3000); do # between two blocks there is none
		pkill -9 -f "fettle-agent $w/blocks" && break
		sleep 0.02
	done
	wait $pid
	[ "$(sqlite3 "$w/fettle.db" "SELECT count(*) FROM attempt WHERE state IN ('lost', 'void')")" -ge 1 ]
	[ "$(sqlite3 "$w/fettle.db" "SELECT max(n) FROM (SELECT count(*) n FROM attempt WHERE state = 'valid' GROUP BY block)")" = 1 ]
	[ "$(sqlite3 "$w/fettle.db" "SELECT state FROM campaign")" = "done" ]
	nothing_left "$w"
}

@test "Ctrl-C cancels what runs, exits 3 and can be resumed" {
	w=$BATS_TEST_TMPDIR/w
	"$FETTLE" run -q -w "$w" "$BRIEF" >"$w.out" 2>&1 &
	pid=$!
	for _ in $(seq 1200); do
		pgrep -f "fettle-agent $w/blocks" >/dev/null && break
		sleep 0.05
	done
	kill -INT $pid
	rc=0
	wait $pid || rc=$?
	[ $rc -eq 3 ]
	nothing_left "$w"
	run "$FETTLE" status -w "$w"
	[[ $output == *stopped* ]]
	"$FETTLE" resume -q -w "$w" >"$w.out" 2>&1
	[ "$(sqlite3 "$w/fettle.db" "SELECT state FROM campaign")" = "done" ]
}
