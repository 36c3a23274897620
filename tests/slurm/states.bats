# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # helpers of the loaded files set job and pid
# What becomes of a campaign when its jobs are interfered with (orchestrator/slurm/STATES.md), on real daemons: the right
# states, and in the end what an undisturbed one comes to. The first agent waits at a gate until the test has done its
# worst, so nothing depends on who is faster. More in long/states.bats.

setup() {
	load common
	load campaign
	WS=$BATS_TEST_TMPDIR/ws
	gate_first_agent
}

teardown() {
	touch "$GATE"
	end_all_jobs
	cluster wait
}

@test "requeued by an admin: taken out of the queue, run again as a new attempt" {
	start_campaign "$RECIPE"
	wait_for first_job running
	scontrol update job "$job" requeue=1
	scontrol requeue "$job"
	touch "$GATE"
	finish_campaign
	[ "$(first_end)" = requeued ]
	[ "$(sql "SELECT group_concat(state) FROM attempt WHERE block = 1")" = void,valid ]
	[ -z "$(squeue -h -j "$job" 2>/dev/null)" ]
}

@test "cancelled by somebody: void, told, run again" {
	start_campaign "$RECIPE"
	wait_for first_job running
	scancel "$job"
	touch "$GATE"
	finish_campaign
	[[ $(first_end) == cancelled || $(first_end) == launch_failed ]]
	[ "$(sql "SELECT group_concat(state) FROM attempt WHERE block = 1")" = void,valid ]
	[ "$(sql "SELECT count(*) FROM event WHERE kind = 'void'")" = 1 ]
	report "$WS" | jq -e '.faults | length == 1'
}

@test "suspended and resumed: what was measured meanwhile does not count" {
	start_campaign "$RECIPE"
	wait_for first_job running
	scontrol suspend "$job"
	wait_for noticed suspended
	scontrol resume "$job"
	touch "$GATE"
	finish_campaign
	[ "$(sql "SELECT group_concat(state) FROM attempt WHERE block = 1")" = void,valid ]
	[[ $(sql "SELECT reason FROM attempt WHERE block = 1 AND number = 1") == *"was suspended by somebody"* ]]
}

@test "held: told, withdrawn after the bound, the campaign stops with what to do, and goes on" {
	scontrol update nodename=n[1-4] state=drain reason=test
	sed 's/^	mode = /	budget = { stuck_min = 0.1 },\n&/' "$RECIPE" >"$BATS_TEST_TMPDIR/held.lua"
	start_campaign "$BATS_TEST_TMPDIR/held.lua"
	wait_for first_job pending
	scontrol hold "$job"
	status=0
	wait "$pid" || status=$?
	cat "$BATS_TEST_TMPDIR/out"
	scontrol update nodename=n[1-4] state=resume
	[ "$status" = 3 ]
	[ "$(first_end)" = never_started ]
	[ "$(sql "SELECT count(*) FROM event WHERE kind = 'waits'")" -ge 1 ]
	[[ $(sql "SELECT reason FROM campaign") == *"change what the reason names"* ]]
	[ -z "$(squeue -h)" ]
	touch "$GATE"
	start_campaign
	finish_campaign
}
