#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# More of machine.bats and owners.bats, for LONG=1.

load ../common
setup_file() {
	faults_setup_file
	build_failnth
}
setup() { W=$BATS_TEST_TMPDIR/w; }

@test "between the directory and block.json" { killed_before rename '*/blocks/*/block.json'; }
@test "between block.json and the note that an agent is to be started" { killed_before rename '*/.tokens/fettle:*'; }
@test "between the two notes of an agent" { killed_before symlink '*/.tokens/fettle:*.id'; }
@test "the disk is full in the first block" { disk_is_full_at 1.1; }

@test "an owner that was taken over does not cancel what is no longer its own" {
	gate_agent 1.1
	"$FETTLE" run -q -w "$W" "$RECIPE" >"$W.out" 2>&1 &
	old=$!
	wait_for agents "$W"
	wait_for waits_for_agent
	kill -STOP $old
	"$FETTLE" resume -q --take-over -w "$W" >"$W.new.out" 2>&1 &
	new=$!
	wait_for taken_over
	kill -TERM $old
	kill -CONT $old
	rc=0
	wait $old || rc=$?
	[ $rc -ne 0 ]
	touch "$GATE"
	wait $new
	[ "$(sqlite3 "$W/fettle.db" "SELECT count(*) FROM attempt WHERE state <> 'valid'")" = 0 ]
	same_as_reference "$W"
}

@test "three campaigns of one workspace at once: no trial disturbs another" {
	for i in 1 2 3; do
		"$FETTLE" run -q -w "$W" "$RECIPE" >"$W.$i.out" 2>&1 &
		pids[i]=$!
	done
	for i in 1 2 3; do wait "${pids[i]}"; done
	[ "$(sqlite3 "$W/fettle.db" "SELECT count(*) FROM campaign WHERE state = 'done'")" = 3 ]
	[ "$(sqlite3 "$W/fettle.db" "SELECT count(*) FROM attempt WHERE state <> 'valid'")" = 0 ]
	[ "$(sqlite3 "$W/fettle.db" "SELECT count(*) FROM trial a JOIN trial b ON a.id < b.id
	  WHERE a.start_us < b.start_us + b.wall_us AND b.start_us < a.start_us + a.wall_us")" = 0 ]
}
