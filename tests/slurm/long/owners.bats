# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # helpers of the loaded files set job, pid and status
# Two login nodes of one cluster, which are two names for this machine: one campaign, one owner, no job twice. LONG=1.

setup() {
	load ../common
	load ../campaign
	WS=$BATS_TEST_TMPDIR/ws
	gate_first_agent
}

teardown() {
	touch "$GATE"
	end_all_jobs
	cluster wait
}

# on NUMBER COMMAND...: on that login node
on() { FETTLE_TEST_HOST=login$1 FETTLE_TEST_BOOT_ID=boot$1 "${@:2}"; }

owner_is() { [ "$(sql "SELECT host || ' ' || fence FROM lease")" = "$1" ]; }

# The first node stops breathing in the middle of a job. The second may take over when its heartbeats are missing, not
# before; it adopts the job; the first, awake again, changes nothing and cancels nothing.
fenced() {
	on 1 start_campaign "$RECIPE"
	old=$pid
	wait_for first_job running
	run on 2 "$FETTLE" resume -q -w "$WS"
	echo "$output"
	[ "$status" = 3 ]
	[[ $output == *"is being run by pid $old on host login1"* ]]
	kill -STOP "$old"
	mv "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/old.out"
	"$@"
	wait_for owner_is 'login2 2'
	kill -CONT "$old"
	status=0
	wait "$old" || status=$?
	cat "$BATS_TEST_TMPDIR/old.out"
	[ "$status" = 4 ]
	grep -q "was taken over by pid .* on host login2" "$BATS_TEST_TMPDIR/old.out"
	[ -n "$(squeue -h -j "$job" -t running)" ]
	# nor does cron on the first node, while the second one beats
	run on 1 "$FETTLE" tick -q -w "$WS"
	[ "$status" = 3 ]
	touch "$GATE"
	finish_campaign
	[ "$(sql "SELECT count(*) FROM attempt WHERE state <> 'valid'")" = 0 ]
	[ "$(sql 'SELECT count(*) - count(DISTINCT job_id) FROM allocation')" = 0 ]
}

lapses() {
	sql 'UPDATE lease SET heartbeat_us = 1'
	on 2 start_campaign
}

is_told_to() {
	"$FETTLE" resume -q --take-over -w "$WS" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	pid=$!
}

@test "the lease of a login node lapses: taken over, its job adopted, the old owner fenced" {
	fenced lapses
}

@test "taken over by a person's word, though it beats" {
	fenced on 2 is_told_to
}
