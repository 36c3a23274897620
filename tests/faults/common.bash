# SPDX-License-Identifier: GPL-2.0-or-later
# For the tests of faults: a brief campaign whose figures depend on nothing but block, slot and arm, and what
# of its result must not depend on what happened meanwhile.

faults_setup_file() {
	cd "${BASH_SOURCE[0]%/*}/../.." || exit 1
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
	for _ in $(seq 600); do
		agents "$1" >/dev/null || break
		sleep 0.1
	done
	! agents "$1" || return 1
	for p in $(pgrep -x planted); do
		! tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" | grep -q "^FETTLE_TRIAL_DIR=$1" || return 1
	done
}

# wait_for COMMAND...: until it succeeds, for a minute
wait_for() {
	for _ in $(seq 1200); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.05
	done
	return 1
}

build_failnth() { cc -D_GNU_SOURCE -shared -fPIC -o "$BATS_FILE_TMPDIR/failnth.so" tests/faults/failnth.c -ldl; }

# killed_before CALL PATTERN: each run before its first such call; a tick does what is due and leaves the next
# block to the next run, until one gets through
killed_before() {
	killed=0
	for _ in $(seq 60); do
		args=(run -q -w "$W" "$RECIPE")
		[ "$(sqlite3 "$W/fettle.db" 'SELECT count(*) FROM campaign' 2>/dev/null)" != 1 ] || args=(resume -q -w "$W")
		rc=0
		FAIL_NTH=1 FAIL_CALLS=$1 FAIL_PATH=$2 LD_PRELOAD=$BATS_FILE_TMPDIR/failnth.so \
			"$FETTLE" "${args[@]}" >"$W.out" 2>&1 || rc=$?
		[ "$rc" -eq 137 ] || break
		killed=$((killed + 1))
		"$FETTLE" tick -q -w "$W" >>"$W.tick" 2>&1
	done
	[ "$rc" -eq 0 ]
	[ "$killed" -ge 4 ]
	same_as_reference "$W"
	nothing_left "$W"
	[ "$(sqlite3 "$W/fettle.db" "SELECT count(*) FROM attempt WHERE number > 1")" = 0 ]
}

waits_for_agent() { [ "$(sqlite3 "$W/fettle.db" 'SELECT count(job_id) FROM allocation')" = 1 ]; }
taken_over() { [ "$(sqlite3 "$W/fettle.db" 'SELECT fence FROM lease')" = 2 ]; }

# A file system of 8 MB of our own: root or not. In a chroot / is no mount whose propagation could be set.
in_small_disk() {
	local ns=(unshare -m)
	[ "$(id -u)" -eq 0 ] || ns=(unshare -rm)
	"${ns[@]}" true 2>/dev/null || ns+=(--propagation unchanged)
	"${ns[@]}" "$@"
}

# gate_agent ATTEMPT: an agent that begins this attempt (a pattern of sh) only when $GATE is there. A campaign that waits for
# it goes no further, however slow the test is.
gate_agent() {
	export GATE=$BATS_TEST_TMPDIR/gate GATED_AGENT=${FETTLE_BUILD:-$PWD/build/release}/fettle-agent
	mkdir "$BATS_TEST_TMPDIR/gated"
	printf '#!/bin/sh\ncase $1 in */%s) until [ -e "%s" ]; do sleep 0.05; done ;; esac\nexec "%s" "$@"\n' \
		"$1" "$GATE" "$GATED_AGENT" >"$BATS_TEST_TMPDIR/gated/fettle-agent"
	chmod +x "$BATS_TEST_TMPDIR/gated/fettle-agent"
	export FETTLE_AGENT=$BATS_TEST_TMPDIR/gated/fettle-agent
}

# fill_when_running DIR WHEN: the disk is full from the moment that attempt WHEN runs until fettle has ended. The second
# trial of the attempt waits for that.
fill_when_running() {
	mount -t tmpfs -o size=8m tmpfs "$1"
	mkdir "$1.bin"
	printf '#!/bin/sh\ncase $FETTLE_TRIAL_DIR in */%s/t01) until [ -e "%s" ]; do sleep 0.02; done ;; esac\nexec "%s" "$@"\n' \
		"$2" "$1.full" "$(command -v planted)" >"$1.bin/planted"
	chmod +x "$1.bin/planted"
	PATH=$1.bin:$PATH "$FETTLE" run -q -w "$1/w" "$RECIPE" >"$1.out" 2>&1 &
	run=$!
	wait_for [ -e "$1/w/blocks/$2/t01" ] || return 1
	head -c 9000000 /dev/zero >"$1/fill" 2>/dev/null || true
	touch "$1.full"
	rc=0
	wait $run || rc=$?
	echo "$rc" >"$1.rc"
	sqlite3 "$1/w/fettle.db" 'PRAGMA integrity_check' >"$1.check"
	# Still full: the same again, and again nothing is lost.
	rc=0
	"$FETTLE" resume -q -w "$1/w" >"$1.full.out" 2>&1 || rc=$?
	echo "$rc" >"$1.full.rc"
	wait_for [ -z "$(agents "$1/w")" ]
	rm "$1/fill"
	"$FETTLE" resume -q -w "$1/w" >"$1.resumed.out" 2>&1 || return 1
	same_as_reference "$1/w"
	umount -l "$1"
}

disk_is_full_at() {
	mkdir "$W"
	export -f fill_when_running wait_for agents same_as_reference results
	in_small_disk bash -c 'set -e; fill_when_running "$@"' fill "$W" "$1"
	[ "$(cat "$W.rc")" -ne 0 ]
	grep -qE "^fettle run: error: .*(No space left|disk is full)" "$W.out"
	[ "$(cat "$W.check")" = ok ]
	[ "$(cat "$W.full.rc")" -ne 0 ]
	grep -qE "^fettle resume: error: .*(No space left|disk is full)" "$W.full.out"
}
