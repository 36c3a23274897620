# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # helpers of the loaded files set job, pid and status
# Windows and budgets on real daemons, and the next night: nothing half done, the report says where it stopped and why,
# and in the end it is what an undisturbed campaign comes to. LONG=1.

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

at() { date -u -d "@$1" +%H:%M; }

# Every attempt counts, none is in flight, no job is left.
nothing_half_done() {
	[ "$(sql "SELECT count(*) FROM attempt WHERE state <> 'valid'")" = 0 ]
	[ "$(sql 'SELECT count(*) FROM attempt')" -ge 1 ]
	wait_for no_jobs
}

# A block of this recipe may take four minutes by its limits. The first agent waits until that is more than the window
# has left; so whatever the speed of the machine, its block is the last of the night.
@test "a window that closes in mid campaign: what runs ends, nothing new starts, and the next night goes on" {
	closes=$((($(date +%s) / 60 + 7) * 60))
	window="'$(at $((closes - 3600)))-$(at $closes) UTC', '$(at $((closes + 60)))-$(at $((closes + 7200))) UTC'"
	sed "s/^	mode = /	budget = { window = { $window }, jobs = 1 },\n&/" "$RECIPE" >"$BATS_TEST_TMPDIR/night.lua"
	start_campaign "$BATS_TEST_TMPDIR/night.lua"
	wait_for first_job running
	while [ "$(date +%s)" -lt $((closes - 200)) ]; do sleep 1; done
	touch "$GATE"
	status=0
	wait "$pid" || status=$?
	cat "$BATS_TEST_TMPDIR/out"
	[ "$status" = 3 ]
	nothing_half_done
	blocks=$(sql 'SELECT count(*) FROM attempt')
	[ "$blocks" = 1 ]
	[[ $(report "$WS" | jq -r '.campaign.state + ": " + .campaign.reason') == "running: the next block may take "*" min and the window closes at "*": it is not started" ]]
	# before the next night every try says the same and changes nothing
	run "$FETTLE" tick -q -w "$WS"
	[ "$status" = 3 ]
	[ "$(sql 'SELECT count(*) FROM attempt')" = "$blocks" ]
	while [ "$(date +%s)" -lt $((closes + 61)) ]; do sleep 1; done
	start_campaign
	finish_campaign
	[ "$(sql "SELECT count(*) FROM event WHERE kind = 'window'")" -ge 1 ]
	# the two nights are two nights in the books
	[ "$(sql "SELECT count(*) FROM trial WHERE start_us / 1000000 BETWEEN $closes AND $closes + 59")" = 0 ]
}

@test "a budget that runs out: the campaign stops between blocks, says so, and each resume buys as much again" {
	touch "$GATE"
	sed 's/^	mode = /	budget = { trials = 14 },\n&/' "$RECIPE" >"$BATS_TEST_TMPDIR/budget.lua"
	start_campaign "$BATS_TEST_TMPDIR/budget.lua"
	for ((night = 1; night < 20; night++)); do
		status=0
		wait "$pid" || status=$?
		cat "$BATS_TEST_TMPDIR/out"
		[ "$status" != 0 ] || break
		[ "$status" = 3 ]
		nothing_half_done
		[[ $(report "$WS" | jq -r '.campaign.state + ": " + .campaign.reason') == "stopped: the budget of trials is used up; "*"goes on" ]]
		"$FETTLE" report 1 -w "$WS" | grep -q 'the budget of trials is used up'
		start_campaign
	done
	[ "$night" -ge 2 ]
	same_as_local
}
