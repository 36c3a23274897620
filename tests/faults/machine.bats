#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What a machine does to a campaign: its disk is full, its clock is set, fettle is killed in the same window of
# each block. Told clearly, nothing half done, no job orphaned, no block run twice: it ends as an undisturbed one.

load common
setup_file() {
	faults_setup_file
	build_failnth
	cc -shared -fPIC -o "$BATS_FILE_TMPDIR/clockjump.so" tests/faults/clockjump.c -ldl
}
setup() { W=$BATS_TEST_TMPDIR/w; }

@test "the disk is full in the middle" { disk_is_full_at 4.1; }

@test "a full disk where the database is opened is not taken for missing rights" {
	echo 'return { name = "w", workload = { command = { "true" } }, objective = "trial_wall_s" }' >"$BATS_TEST_TMPDIR/w.lua"
	"$FETTLE" run -q -s fake --anyway -w "$W" "$BATS_TEST_TMPDIR/w.lua" || true
	FAIL_NTH=1 FAIL_LAST=9 FAIL_WITH=ENOSPC FAIL_CALLS=open FAIL_PATH='*/fettle.db' LD_PRELOAD=$BATS_FILE_TMPDIR/failnth.so \
		run "$FETTLE" resume -w "$W"
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"/fettle.db can be read only, though this user may write it: look for space on its file system"* ]]
	[[ $output != *"not writable"* ]]
}

@test "the clock is set an hour forward, then two hours back, while a campaign runs" {
	export CLOCK_OFFSET=$BATS_TEST_TMPDIR/offset
	echo 0 >"$CLOCK_OFFSET"
	gate_agent 4.1
	LD_PRELOAD=$BATS_FILE_TMPDIR/clockjump.so "$FETTLE" run -q -w "$W" "$RECIPE" >"$W.out" 2>&1 &
	owner=$!
	wait_for [ -e "$W/blocks/2.1" ]
	echo 3600 >"$CLOCK_OFFSET"
	# A cron job sees a heartbeat of an hour ago, and a process that lives.
	LD_PRELOAD=$BATS_FILE_TMPDIR/clockjump.so run "$FETTLE" tick -q -w "$W"
	[ "$status" -eq 3 ]
	[[ $output == *"is being run by pid $owner"* ]]
	wait_for [ -e "$W/blocks/4.1" ]
	echo -3600 >"$CLOCK_OFFSET"
	touch "$GATE"
	wait $owner
	[ "$(sqlite3 "$W/fettle.db" "SELECT max(start_us) - min(start_us) FROM trial" | wc -c)" -gt 1 ]
	same_as_reference "$W"
	nothing_left "$W"
}

@test "between the intent in the database and the block's directory" { killed_before mkdir '*/blocks/[0-9]*'; }
@test "between the start of an agent and the note of its process" { killed_before symlink '*/.tokens/id.*'; }
