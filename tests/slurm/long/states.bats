# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # helpers of the loaded files set job and pid
# The rest of the matrix of orchestrator/slurm/STATES.md, on real daemons. LONG=1. Each campaign must come to what an
# undisturbed one comes to; the first agent waits at a gate until the test has done its worst.

setup() {
	load ../common
	load ../campaign
	WS=$BATS_TEST_TMPDIR/ws
	gate_first_agent
}

teardown() {
	touch "$GATE"
	rm -f "$FETTLE_CLUSTER_DIR/prolog-fails"
	cluster set SlurmdTimeout=60 >/dev/null
	scontrol update nodename=n[1-4] state=resume 2>/dev/null || true
	end_all_jobs
	cluster wait
}

forgotten() { ! scontrol show job "$job" >/dev/null 2>&1; }
drained() { sinfo -h -N -p tune -o %T | grep -q drained; }

@test "a node that is drained under a job lets it end; further blocks run elsewhere" {
	start_campaign "$RECIPE"
	wait_for first_job running
	node=$(squeue -h -j "$job" -o %B)
	scontrol update nodename="$node" state=drain reason=test
	touch "$GATE"
	finish_campaign
	[ "$(sql "SELECT count(*) FROM attempt WHERE state <> 'valid'")" = 0 ]
	[ "$(sql "SELECT count(*) FROM allocation_node WHERE node = '$node'")" = 1 ]
}

@test "a node goes down under a job: void, and the node is a suspect" {
	start_campaign "$RECIPE"
	wait_for first_job running
	node=$(squeue -h -j "$job" -o %B)
	scontrol update nodename="$node" state=down reason=test
	for ((i = 0; i < 1200; i++)); do [ "$(first_end)" = node_fail ] && break; sleep 0.1; done
	scontrol update nodename="$node" state=resume 2>/dev/null || true # it may be back by itself
	touch "$GATE"
	finish_campaign
	[ "$(first_end)" = node_fail ]
	"$FETTLE" nodes -w "$WS" --json | jq -e --arg n "$node" '[.nodes[] | select(.node == $n) | .faults] == [1]'
}

@test "a prolog that fails: no fault of the block, and the job's nodes are suspects" {
	touch "$GATE" "$FETTLE_CLUSTER_DIR/prolog-fails"
	start_campaign "$RECIPE"
	wait_for drained
	rm "$FETTLE_CLUSTER_DIR/prolog-fails"
	for ((i = 0; i < 1200; i++)); do [ "$(first_end)" = launch_failed ] && break; sleep 0.1; done
	scontrol update nodename=n[1-4] state=resume 2>/dev/null || true
	finish_campaign
	[ "$(first_end)" = launch_failed ]
	[ "$(sql "SELECT state FROM attempt WHERE id = 1")" = void ]
	"$FETTLE" nodes -w "$WS" --json | jq -e '[.nodes[].faults] | add >= 1'
}

@test "slurmd dies under the job" {
	cluster set SlurmdTimeout=10
	start_campaign "$RECIPE"
	wait_for first_job running
	node=$(squeue -h -j "$job" -o %B)
	cluster signal "$node" KILL
	for ((i = 0; i < 3000; i++)); do [ "$(first_end)" = node_fail ] && break; sleep 0.1; done
	cluster up "$node"
	touch "$GATE"
	finish_campaign
	[ "$(first_end)" = node_fail ]
}

@test "the time limit ends the job: lost, told, and after three of them the campaign stops with what to do" {
	sed 's/resources = {/resources = { time_limit_min = 1,/' "$RECIPE" >"$BATS_TEST_TMPDIR/brief.lua"
	# no agent gets through
	sed -i 's,\*/1.1),*),' "$FETTLE_AGENT"
	start_campaign "$BATS_TEST_TMPDIR/brief.lua"
	status=0
	wait "$pid" || status=$?
	cat "$BATS_TEST_TMPDIR/out"
	[ "$status" = 3 ]
	[ "$(sql "SELECT count(*) FROM allocation WHERE outcome = 'timeout'")" = 3 ]
	# what was in flight is withdrawn
	[ "$(sql "SELECT count(*) FROM attempt WHERE state IN ('planned', 'submitted')")" = 0 ]
	[[ $(sql "SELECT reason FROM campaign") == *"3 jobs in a row ended alike: timeout"*time_limit_min* ]]
	[ -z "$(squeue -h)" ]
}

@test "preempted: its complete passes are kept, the block is run again" {
	sed -e 's/resources = {/resources = { partition = "low",/' -e 's/trial_s = 30/trial_s = 240/' -e 's/^	mode = /	repeats = 4,\n&/' \
		"$RECIPE" >"$BATS_TEST_TMPDIR/low.lua"
	touch "$GATE"
	# the trial of slot 5 of the first attempt waits at a gate of its own
	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/sh\ncase $FETTLE_TRIAL_DIR in */1.1/t05) until [ -e "%s" ]; do sleep 0.05; done ;; esac\nexec "%s" "$@"\n' \
		"$GATE.5" "$(command -v planted)" >"$BATS_TEST_TMPDIR/bin/planted"
	chmod +x "$BATS_TEST_TMPDIR/bin/planted"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH
	start_campaign "$BATS_TEST_TMPDIR/low.lua"
	wait_for [ -e "$WS/blocks/1.1/t04.json" ]
	sbatch --parsable -p high -N4 -o /dev/null --wrap true >/dev/null
	for ((i = 0; i < 1200; i++)); do [ "$(first_end)" = preempted ] && break; sleep 0.1; done
	touch "$GATE.5"
	status=0
	wait "$pid" || status=$?
	cat "$BATS_TEST_TMPDIR/out"
	[ "$status" = 0 ]
	[ "$(first_end)" = preempted ]
	[ "$(sql "SELECT group_concat(state) FROM (SELECT state FROM attempt WHERE allocation = 1 ORDER BY id)")" = void,valid ]
	# two passes over both arms
	[ "$(sql "SELECT count(*) FROM trial t JOIN attempt a ON a.id = t.attempt WHERE a.allocation = 1 AND t.kind = 'timed'")" = 4 ]
	[ "$(sql "SELECT count(*) FROM (SELECT arm FROM trial t JOIN attempt a ON a.id = t.attempt WHERE a.allocation = 1 AND t.kind = 'timed' GROUP BY arm HAVING count(*) = 2)")" = 2 ]
	# the smaller block counts as one of the stage's: the first is run again only if the stage wants more
	[[ $(sql "SELECT group_concat(state) FROM attempt WHERE block = 1") == void* ]]
}

@test "MinJobAge passes while fettle is down: results that are there count, and what is gone is run again" {
	start_campaign "$RECIPE"
	wait_for first_job running
	kill -9 "$pid"
	wait "$pid" || true
	touch "$GATE"
	wait_for [ -e "$WS/blocks/1.1/done.json" ]
	for ((i = 0; i < 1800; i++)); do forgotten && break; sleep 0.1; done
	forgotten
	start_campaign
	finish_campaign
	[ "$(sql "SELECT group_concat(state) FROM attempt WHERE block = 1")" = valid ]
}

@test "a job vanishes with its files unwritten: lost, and run again" {
	start_campaign "$RECIPE"
	wait_for first_job running
	kill -9 "$pid"
	wait "$pid" || true
	scancel "$job"
	for ((i = 0; i < 1800; i++)); do forgotten && break; sleep 0.1; done
	forgotten
	touch "$GATE"
	start_campaign
	finish_campaign
	[ "$(first_end)" = vanished ]
	[ "$(sql "SELECT group_concat(state) FROM attempt WHERE block = 1")" = lost,valid ]
}

# Until its nodes have answered it slurmctld starts no step: a trial may hang in srun, and its attempt is void.
@test "slurmctld is restarted in an orderly way, its state kept: no job is lost" {
	start_campaign "$RECIPE"
	wait_for first_job running
	cluster restart slurmctld
	wait_for first_job running # it answers again
	touch "$GATE"
	finish_campaign
	[ "$(sql "SELECT count(*) FROM attempt WHERE state = 'lost'")" = 0 ]
}

campaign_is() { [ "$(sql 'SELECT state FROM campaign')" = "$1" ]; }

@test "run --detach: a small job of the cluster drives the campaign; ended early, it leaves the jobs and resume adopts them" {
	run "$FETTLE" run --detach -q -w "$WS" "$RECIPE"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"is driven by job "*"detached/1/fettle.out" ]]
	wait_for first_job running
	driver=$(squeue -h -o '%i %j' | sed -n 's/^\([0-9]*\) fettle:.*:d1$/\1/p')
	[ -n "$driver" ]
	run "$FETTLE" resume -q -w "$WS"
	[ "$status" = 3 ] # it has an owner
	scancel --signal=TERM --batch "$driver"
	for ((i = 0; i < 1200; i++)); do [ -z "$(squeue -h -j "$driver" 2>/dev/null)" ] && break; sleep 0.1; done
	[ -n "$(squeue -h -j "$job")" ]
	touch "$GATE"
	start_campaign
	finish_campaign
	[ "$(sql "SELECT count(*) FROM attempt WHERE state <> 'valid'")" = 0 ]
}

@test "run --detach: from beginning to end" {
	touch "$GATE"
	"$FETTLE" run --detach -q -w "$WS" "$RECIPE"
	wait_for campaign_is "done"
	same_as_local
	grep -q 'Fix: fast=true: validated' "$WS/detached/1/fettle.out"
}
