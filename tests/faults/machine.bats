#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What a machine does to a campaign: its disk is full, its clock is set. Told clearly, nothing half done,
# and it ends as an undisturbed one.

load common
setup_file() {
	faults_setup_file
	cc -shared -fPIC -o "$BATS_FILE_TMPDIR/clockjump.so" tests/faults/clockjump.c -ldl
}
setup() { W=$BATS_TEST_TMPDIR/w; }

# A file system of 8 MB of our own: root or not.
in_small_disk() {
	if [ "$(id -u)" -eq 0 ]; then set -- unshare -m "$@"; else set -- unshare -rm "$@"; fi
	"$@"
}

# fill_when_running DIR WHEN: the disk is full from the moment that attempt WHEN runs until fettle has ended
fill_when_running() {
	mount -t tmpfs -o size=8m tmpfs "$1"
	"$FETTLE" run -q -w "$1/w" "$RECIPE" >"$1.out" 2>&1 &
	run=$!
	wait_for [ -e "$1/w/blocks/$2/t01" ] || return 1
	head -c 9000000 /dev/zero >"$1/fill" 2>/dev/null || true
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

@test "the disk is full in the first block" { disk_is_full_at 1.1; }
@test "the disk is full in the middle" { disk_is_full_at 4.1; }

@test "the clock is set an hour forward, then two hours back, while a campaign runs" {
	export CLOCK_OFFSET=$BATS_TEST_TMPDIR/offset
	echo 0 >"$CLOCK_OFFSET"
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
	wait $owner
	[ "$(sqlite3 "$W/fettle.db" "SELECT max(start_us) - min(start_us) FROM trial" | wc -c)" -gt 1 ]
	same_as_reference "$W"
	nothing_left "$W"
}
