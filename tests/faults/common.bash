# SPDX-License-Identifier: GPL-2.0-or-later
# For the tests of faults: a brief campaign whose figures depend on nothing but block, slot and arm, and what
# of its result must not depend on what happened meanwhile.

faults_setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	export FETTLE=${FETTLE:-$PWD/build/fettle}
	export PATH=${FETTLE_BUILD:-$PWD/build/release}/tests/workloads:$PATH
	export RECIPE=$PWD/tests/fixtures/recipes/planted-brief.lua
	export REFERENCE=$BATS_FILE_TMPDIR/reference
	"$FETTLE" run -q -w "$REFERENCE" "$RECIPE" >"$REFERENCE.out" 2>&1
	results "$REFERENCE" >"$REFERENCE.txt"
	[ "$(wc -l <"$REFERENCE.txt")" -gt 20 ]
}

# Neither times, job ids nor numbers of attempts: what was void or lost may have been run again.
results() {
	sqlite3 "$1/fettle.db" "
	SELECT 'stage', s.seq, s.kind, s.round, s.planned_blocks, s.note FROM stage s ORDER BY s.seq;
	SELECT 'trial', s.seq, b.idx, t.slot, r.label, t.kind, t.state FROM trial t JOIN attempt a ON a.id = t.attempt
	  JOIN block b ON b.id = a.block JOIN stage s ON s.id = b.stage JOIN arm r ON r.id = t.arm
	  WHERE a.state = 'valid' ORDER BY s.seq, b.idx, t.slot;
	SELECT 'verdict', v.stage, v.look, v.n, v.outcome, round(v.est, 9), round(v.lo, 9), round(v.hi, 9), v.inputs_hash
	  FROM verdict v ORDER BY v.id;
	SELECT 'hypothesis', h.knob, h.value, h.state, h.reason FROM hypothesis h ORDER BY h.id;
	SELECT 'fix', f.state, round(f.est, 9), f.n FROM fix f;
	SELECT 'campaign', state FROM campaign;"
}

same_as_reference() {
	results "$1" >"$1.txt"
	diff "$REFERENCE.txt" "$1.txt"
	# no attempt twice, nothing half done
	[ "$(sqlite3 "$1/fettle.db" "SELECT max(n) FROM (SELECT count(*) AS n FROM attempt WHERE state = 'valid' GROUP BY block)")" = 1 ]
	[ "$(sqlite3 "$1/fettle.db" "SELECT count(*) FROM attempt WHERE state IN ('planned', 'submitted')")" = 0 ]
	[ "$(sqlite3 "$1/fettle.db" "SELECT count(*) FROM event WHERE kind IN ('conflict', 'late')")" = 0 ]
	[ "$(sqlite3 "$1/fettle.db" 'PRAGMA integrity_check')" = ok ]
}

agents() { pgrep -f "fettle-agent $1/blocks"; }

# An agent that was told to end may take a moment.
nothing_left() {
	for _ in $(seq 100); do
		agents "$1" >/dev/null || break
		sleep 0.1
	done
	! agents "$1" || return 1
	for p in $(pgrep -x planted); do
		! tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" | grep -q "^FETTLE_TRIAL_DIR=$1" || return 1
	done
}

# wait_for COMMAND...: until it succeeds, for ten seconds
wait_for() {
	for _ in $(seq 200); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.05
	done
	return 1
}
