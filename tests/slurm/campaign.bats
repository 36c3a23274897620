# SPDX-License-Identifier: GPL-2.0-or-later
# Whole campaigns on the cluster: blocks of two nodes, ranks started by srun.

setup() {
	load common
	load campaign
	WS=$BATS_TEST_TMPDIR/ws
}

teardown() {
	end_all_jobs
	cluster wait
}

@test "a campaign on the cluster comes to what the same one comes to on this machine" {
	run "$FETTLE" run -w "$WS" "$RECIPE"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"Fix: fast=true: validated"* ]]
	same_as_local
	# equal in form: the same members, but for the values of the host's own metrics
	diff <(report "$WS" | jq -r 'keys[]') <(report "$BATS_FILE_TMPDIR/local" | jq -r 'keys[]')
	diff <(report "$WS" | jq -r '.hypotheses[0] | keys[]') <(report "$BATS_FILE_TMPDIR/local" | jq -r '.hypotheses[0] | keys[]')
	# two nodes each, all arms of a block on the same ones, both ranks seen by the agent
	[ "$(count 'allocation_node')" = $((2 * $(count allocation))) ]
	for done in "$WS"/blocks/*/done.json; do
		[ "$(jq '.nodes | length' "$done")" = 2 ]
		[ "$(jq -r '.nodes | join(" ")' "${done%/*}"/t*.json | sort -u | wc -l)" = 1 ]
	done
	cat "$WS"/blocks/*/t*.json | jq -s -e 'all(.argv[0] == "srun" and .ranks_expected == 2)'
	# the launcher is told from the ranks; a rank that starts late may be missed
	cat "$WS"/blocks/*/t*.json | jq -s -e '[.[].ranks | map(.rank) | sort] | map(select(. == [-1, 0, 1])) | length > 10'
	# nothing is left behind
	end_all_jobs
	wait_for no_process "$WS"
}

@test "Ctrl-C cancels the jobs, kill -9 cannot: after both, resume comes to the same result" {
	"$FETTLE" run -q -w "$WS" "$RECIPE" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	pid=$!
	wait_for has_job 2
	kill -INT $pid
	status=0
	wait $pid || status=$?
	cat "$BATS_TEST_TMPDIR/out"
	[ "$status" = 3 ]
	wait_for no_jobs
	jobs=$(count 'allocation WHERE job_id IS NOT NULL')
	"$FETTLE" resume -q -w "$WS" >/dev/null 2>&1 3>&- &
	pid=$!
	wait_for has_job $((jobs + 2))
	kill -9 $pid
	wait $pid || true
	run "$FETTLE" resume -w "$WS"
	echo "$output"
	[ "$status" = 0 ]
	same_as_local
	# no job twice, none orphaned
	[ "$(sqlite3 "$WS/fettle.db" 'SELECT count(*) - count(DISTINCT job_id) FROM allocation')" = 0 ]
	[ -z "$(squeue -h -t pending,running)" ]
}

@test "what a recipe asks for, its jobs are asked for" {
	sed 's/resources = {/resources = { comment = "why", licenses = "matlab:1", nice = 5, deadline = "now+2hours",/' "$RECIPE" \
		>"$BATS_TEST_TMPDIR/more.lua"
	"$FETTLE" run -q -w "$WS" "$BATS_TEST_TMPDIR/more.lua" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	pid=$!
	wait_for has_job 1
	job=$(scontrol show job "$(sqlite3 "$WS/fettle.db" 'SELECT max(job_id) FROM allocation')")
	kill -INT $pid
	wait $pid || true
	echo "$job"
	for what in Comment=why Licenses=matlab:1 Nice=5 NumNodes=2 OverSubscribe=NO; do
		grep -qwF -- "$what" <<<"$job"
	done
	grep -q 'Deadline=20' <<<"$job"
}

@test "what Slurm refuses is said in Slurm's words, and no job is left" {
	sed 's/resources = {/resources = { partition = "nope",/' "$RECIPE" >"$BATS_TEST_TMPDIR/bad.lua"
	run "$FETTLE" run -q -w "$WS" "$BATS_TEST_TMPDIR/bad.lua"
	echo "$output"
	[ "$status" -ge 2 ]
	[[ $output == *"Invalid partition name specified"*"sinfo -s"* ]]
	[ -z "$(squeue -h)" ]
}
