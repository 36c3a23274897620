# SPDX-License-Identifier: GPL-2.0-or-later
# Several blocks in one job: each slot is measured once and no block is lost, whatever happens to fettle or to the job.

setup() {
	load common
	load campaign
	WS=$BATS_TEST_TMPDIR/ws
	# one job at a time, so that the two blocks of the screen share one; A/A and final blocks in twos, single nodes
	sed -e 's/resources = {.*/resources = { launcher = "exec" },\n\tbudget = { jobs = 1 },\n\tblocks_per_allocation = 2,/' \
		-e 's/aa = 3/aa = 4/; s/"--sleep-ms", "4"/"--sleep-ms", "20"/' "$RECIPE" >"$BATS_TEST_TMPDIR/pilots.lua"
	RECIPE=$BATS_TEST_TMPDIR/pilots.lua
}

teardown() {
	end_all_jobs
	cluster wait
}

query() {
	sqlite3 "$WS/fettle.db" "$1" 2>/dev/null
}

# What holds however the campaign went.
sound() {
	[ "$(query "SELECT state FROM campaign")" = "done" ]
	# a block counts once, and it has every timed slot once
	[ -z "$(query "SELECT block FROM attempt WHERE state = 'valid' GROUP BY block HAVING count(*) > 1")" ]
	[ -z "$(query "SELECT s.block, s.idx, count(t.id) AS n FROM slot s JOIN attempt a ON a.block = s.block AND a.state = 'valid'
		LEFT JOIN trial t ON t.attempt = a.id AND t.slot = s.idx WHERE s.kind = 'timed' GROUP BY s.block, s.idx HAVING n <> 1")" ]
	# one warm-up at most an allocation, and no directory was run twice
	[ -z "$(query "SELECT a.allocation FROM trial t JOIN attempt a ON a.id = t.attempt WHERE t.kind = 'warmup'
		GROUP BY a.allocation HAVING count(*) > 1")" ]
	[ "$(query 'SELECT count(*) - count(DISTINCT job_id) FROM allocation')" = 0 ]
	[ "$(query 'PRAGMA integrity_check')" = ok ]
	wait_for no_jobs
	wait_for no_process "$WS"
}

# An allocation whose first block has its manifest and whose second one is running; sets $allocation.
in_second_block() {
	local first second
	allocation=$(query "SELECT allocation FROM attempt WHERE state = 'submitted' ORDER BY id DESC LIMIT 1")
	[ -n "$allocation" ] || return 1
	first=$(query "SELECT dir FROM attempt WHERE allocation = $allocation ORDER BY id LIMIT 1")
	second=$(query "SELECT dir FROM attempt WHERE allocation = $allocation ORDER BY id LIMIT 1 OFFSET 1")
	[ -n "$second" ] && [ -e "$WS/$first/done.json" ] && [ -e "$WS/$second/claim.json" ] && [ ! -e "$WS/$second/done.json" ]
}

settled() {
	[ "$(query "SELECT count(*) FROM attempt WHERE allocation = $allocation AND state IN ('planned', 'submitted')")" = 0 ]
}

# Cancel the job that runs its second block. True when it hit that block: on a busy machine it may be over by then.
cancel_in_middle() {
	wait_for in_second_block
	scancel -u "$(id -un)"
	wait_for settled
	[ "$(query "SELECT group_concat(state) FROM (SELECT state FROM attempt WHERE allocation = $allocation ORDER BY id)")" = valid,void ]
}

@test "kill -9 of fettle in the middle of a job: its blocks are taken, none is run again" {
	"$FETTLE" run -q -w "$WS" "$RECIPE" >/dev/null 2>&1 3>&- &
	pid=$!
	wait_for in_second_block
	kill -9 $pid
	wait $pid || true
	run "$FETTLE" resume -w "$WS"
	echo "$output"
	[ "$status" = 0 ]
	sound
	[ "$(query "SELECT count(*) FROM attempt WHERE state <> 'valid'")" = 0 ]
	[[ $output == *"Fix: fast=true: validated"* ]]
	[[ $output == *"in one allocation"* ]]
	[ "$(query "SELECT count(*) || ' in ' || count(DISTINCT a.allocation) FROM attempt a JOIN block b ON b.id = a.block
		JOIN stage s ON s.id = b.stage WHERE s.kind = 'screen'")" = "2 in 1" ]
	[ "$(query "SELECT count(*) || ' in ' || count(DISTINCT a.allocation) FROM attempt a JOIN block b ON b.id = a.block
		JOIN stage s ON s.id = b.stage WHERE s.kind = 'aa'")" = "4 in 2" ]
	# the output of a second block is the job's
	second=$(query "SELECT dir FROM attempt a WHERE EXISTS (SELECT 1 FROM attempt p WHERE p.allocation = a.allocation AND p.id < a.id) LIMIT 1")
	grep -q 'slot' "$WS/$second/agent.out"
}

@test "a job cancelled in its middle loses only the block that was not done" {
	"$FETTLE" run -q -w "$WS" "$RECIPE" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	pid=$!
	cancel_in_middle || cancel_in_middle || cancel_in_middle
	status=0
	wait $pid || status=$?
	cat "$BATS_TEST_TMPDIR/out"
	[ "$status" = 0 ]
	sound
	grep -q 'fast=true' "$BATS_TEST_TMPDIR/out"
}
