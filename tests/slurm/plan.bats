# SPDX-License-Identifier: GPL-2.0-or-later
# fettle plan asks the cluster before anything runs: when and where, or the refusal. Nothing is queued.

setup() {
	load common
	FETTLE=${FETTLE:-$BUILD/fettle}
	cd "$BATS_TEST_TMPDIR" || return 1
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
}

teardown() {
	end_all_jobs
}

# recipe RESOURCES
recipe() {
	cat >c.lua <<-END
		return { name = "c", objective = "throughput_samples_per_s", scheduler = "${2:-slurm}",
			workload = { command = { "true" }, metrics = { file = true }, window = { warmup_steps = 1, steps = 3 } },
			knobs = { { name = "A", env = "A", class = "neutral", values = { 1 } } }, mode = "quick", resources = { $1 } }
	END
}

@test "plan: the cluster says when and where the first job would start" {
	recipe 'nodes = 2, nodelist = "n[3-4]"'
	run "$FETTLE" plan c.lua
	echo "$output"
	[ "$status" -eq 0 ]
	[[ ${lines[-1]} == 'the cluster would take the first job, and start it 20'*'Z (now) on n3,n4 of partition tune' ]] ||
		[[ ${lines[-1]} == 'the cluster would take the first job, and start it 20'*'Z (in 1 min) on n3,n4 of partition tune' ]]
	run "$FETTLE" plan --json c.lua
	[ "$(jq -r '.cluster | .answered, .refused, .nodes, .partition' <<<"$output" | paste -sd' ')" = 'true false n3,n4 tune' ]
	recipe 'begin = "now+2hours"'
	run "$FETTLE" plan c.lua
	[[ ${lines[-1]} =~ \(in\ 1[12][0-9]\ min\) ]]
	[ -z "$(squeue -h)" ]
}

@test "plan: what the cluster would refuse is refused here, with what to change" {
	while IFS='|' read -r fields rc said; do
		recipe "$fields"
		run "$FETTLE" plan c.lua
		echo "$fields: $output"
		[ "$status" -eq "$rc" ]
		[[ ${lines[-1]} == "fettle plan: error: dry run: $said"* ]]
	done <<-END
		partition = "nope"|4|Invalid partition name specified (\`sinfo -s\` lists the partitions)
		nodes = 9|2|9 nodes are asked for, partition tune has 4
		partition = "short", nodes = 2, time_limit_min = 99|2|99 minutes are asked for, partition short gives a job 5 at most (MaxTime
		gpus_per_node = 8|2|Requested node configuration is not available
		constraint = "h200"|4|Invalid feature specification
	END
	recipe 'partition = "nope"'
	run "$FETTLE" plan --json c.lua
	[ "$(jq -r '.cluster.refused' <<<"$(sed '/^fettle plan/d' <<<"$output")")" = true ]
	run "$FETTLE" plan --offline c.lua
	[ "$status" -eq 0 ]
}

@test "plan: a cluster that cannot be asked is no reason to refuse" {
	recipe ''
	SLURM_CONF=/nonexistent/slurm.conf run "$FETTLE" plan c.lua
	echo "$output"
	[ "$status" -eq 0 ]
	[[ ${lines[-1]} == 'the cluster could not be asked: '*'SLURM_CONF=/nonexistent/slurm.conf'* ]]
}

# munged of this machine's clock and of the controller's, which is 1000 s behind.
@test "clocks that differ: munge refuses, and the user reads of the clock" {
	cc -shared -fPIC -o clockjump.so "$HERE/../faults/clockjump.c" -ldl
	echo 1000 >offset
	skewed=$FETTLE_CLUSTER_DIR/skewed
	FETTLE_CLUSTER=$FETTLE_CLUSTER_DIR CLOCK_OFFSET=$PWD/offset LD_PRELOAD=$PWD/clockjump.so munged --force --num-threads=2 \
		--key-file="$FETTLE_CLUSTER_DIR/munge.key" --socket="$skewed.socket" --pid-file="$skewed.pid" \
		--seed-file="$skewed.seed" --log-file="$skewed.log" </dev/null >/dev/null 2>&1 3>&-
	sed "s,^AuthInfo=.*,AuthInfo=socket=$skewed.socket," "$SLURM_CONF" >"$skewed.conf"
	for way in slurm slurm_cli; do
		recipe '' "$way"
		SLURM_CONF=$skewed.conf run "$FETTLE" run -q c.lua
		echo "$output"
		[ "$status" -eq 3 ]
		[[ $output == *'slurmctld hung up: '*'is the clock the same here as there (munge bears 5 minutes)'* ]]
		[ -z "$(squeue -h)" ]
	done
	kill "$(cat "$skewed.pid")"
	SLURM_CONF=$skewed.conf run "$FETTLE" run -q c.lua # no munged at all is another fault
	[ "$status" -eq 3 ]
	[[ $output == *'is munged running here'* ]]
}
