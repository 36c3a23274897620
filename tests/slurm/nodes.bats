# SPDX-License-Identifier: GPL-2.0-or-later
# What happens on each node of an allocation: samples and evidence of all of them, and nothing left there.
# shellcheck disable=SC2016,SC2154 # $ in the workloads is for their own shell; helpers of the loaded files set id

setup() {
	load common
	load campaign
	WS=$BATS_TEST_TMPDIR/ws
	B=$BATS_TEST_TMPDIR/block
	mkdir -p "$B"
}

teardown() {
	end_all_jobs
	cluster wait
}

# A block of one slot whose command runs in bash as two ranks on each of three nodes; a jq filter changes it.
three_nodes() {
	jq -n --arg cmd "$1" '{format: "fettle.block/1", token: "fettle:0:a3", block: 1, attempt: 1,
		window: {pattern: "^step", source: "out", warmup: 2, steps: 10},
		limits: {trial_s: 120, log_bytes: 1048576, grace_s: 1}, workdir: "/tmp",
		launch: ["srun", "--mpi=none", "--kill-on-bad-exit=1", "-N3", "-n6"],
		env: {PATH: "/usr/local/bin:/usr/bin:/bin"}, sampler: {period_ms: 100},
		fingerprint: {keys: [{name: "tool", command: ["echo", "1.2"]}]}, evidence: {env_prefixes: ["NCCL_"]},
		arms: [{arm: 1, argv: ["/bin/bash", "-c", $cmd], env: {NCCL_ALGO: "Ring"}, unset: []}],
		slots: [{slot: 0, arm: 1, repeat: 0, kind: "timed"}]} | '"${2:-.}" >"$B/block.json"
}

# The job of that block ends (sbatch --wait looks every 10 s). $1: its PATH
on_three_nodes() {
	sbatch -N3 -n3 --exclusive -o "$B/agent.out" --wrap "PATH='${1:-$PATH}' exec '$AGENT' '$B'"
	wait_for test -e "$B/done.json"
	wait_for no_jobs
	cat "$B/agent.out"
}

t() { jq -r "$1" "$B/t00.json"; }

forever='i=0; while :; do [ $SLURM_PROCID != 0 ] || echo step $((++i)); sleep 0.05; done'

@test "every rank on every node is seen, with its node; each node is sampled, its clock told" {
	three_nodes "$forever"
	on_three_nodes
	[ "$(t '.state + " " + .ended_by')" = 'ok window' ]
	[ "$(t '[.ranks[] | select(.rank >= 0)] | length')" = 6 ]
	[ "$(t '[.ranks_seen, .ranks_expected] | @csv')" = 6,6 ]
	[ "$(t '[.ranks[] | select(.rank >= 0) | .env.NCCL_ALGO] | unique | @csv')" = '"Ring"' ]
	# the map, as Slurm laid the tasks out
	[ "$(t '[.ranks[] | select(.rank >= 0) | .node] | join(" ")')" = "$(t '[.nodes[] | ., .] | join(" ")')" ]
	[ "$(t '.nodes | length')" = 3 ]
	[ "$(t '[.samplers[].state] | join(" ")')" = 'ok ok' ]
	[ "$(t '[.samplers[].node] | join(" ")')" = "$(t '.nodes[1:] | join(" ")')" ]
	[ "$(t '[.samplers[].boot_id] | unique[0] | length')" = 36 ]
	# they share a clock, which is therefore within the error of what was found
	[ "$(t '[.samplers[] | (.clock_offset_us | fabs) <= .clock_error_us] | all')" = true ]
	[ "$(t '[.leftovers, .cleaned] | @csv')" = 0,true ]
	# each of them told what it is
	for node in $(t '.nodes[]'); do
		file=$B/environment.$node.json
		[ -e "$file" ] || file=$B/environment.json
		[ "$(jq -r '[.node, .keys.tool, .keys.kernel, (.keys.slurm | length > 0)] | join(" ")' "$file")" = "$node 1.2 $(uname -r) true" ]
	done
	[ "$(find "$B" -name 'environment*.json' | wc -l)" = 3 ]
	for node in $(t '.nodes[1:][]'); do
		[ "$(grep -Evc '^[0-9]{16} (hz|ncpu|clock|stat|procs|mem|psi|disk|net|ib|tree|self) [^ ]' "$B/samples.$node")" = 0 ]
		# two ranks and nothing of other nodes: each has a sleep at most
		awk '$2 == "tree" && $3 > n { n = $3 } END { exit !(n >= 2 && n <= 4) }' "$B/samples.$node"
	done
	wait_for no_process "fettle-agent sample $B"
}

@test "a job step that cannot be made costs its evidence, not the trial" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/sh\ncase " $* " in *" --overlap "*) echo "srun: error: Unable to create step for job 7: Requested nodes are busy" >&2; exit 1 ;; esac\nexec %s "$@"\n' \
		"$(command -v srun)" >"$BATS_TEST_TMPDIR/bin/srun"
	chmod +x "$BATS_TEST_TMPDIR/bin/srun"
	three_nodes "$forever"
	on_three_nodes "$BATS_TEST_TMPDIR/bin:$PATH"
	[ "$(t '.state')" = ok ]
	[ "$(t '[.samplers[].state] | join(" ")')" = 'absent absent' ]
	[ "$(t '.samplers[0].reason')" = 'srun: error: Unable to create step for job 7: Requested nodes are busy' ]
	[ "$(t '[.ranks_seen, .ranks_expected] | @csv')" = 2,6 ]
}

@test "an agent sent to the disks of the nodes runs there and is gone afterwards; one for another machine is asked for" {
	cp "$AGENT" "$BATS_TEST_TMPDIR/fettle-agent"
	mkdir "$BATS_TEST_TMPDIR/local" "$BATS_TEST_TMPDIR/blocks"
	export FETTLE_BLOCKS=$BATS_TEST_TMPDIR/blocks
	drive_start "$BATS_TEST_TMPDIR/fettle-agent"
	three_nodes "$forever" ".token = \"$(new_token)\""
	submit "$(jq -r .token "$B/block.json")" "$B" nodes=3 sbcast="$BATS_TEST_TMPDIR/local"
	say until ended 120 "$id"
	expect "$id ended ok 0 *"
	[ "$(t '[.ranks_seen, .ranks_expected] | @csv')" = 6,6 ]
	[ -z "$(ls "$BATS_TEST_TMPDIR/local")" ]
	[ "$(find "$BATS_TEST_TMPDIR/agent" -name fettle-agent | wc -l)" = 1 ] # what was sent: the workspace's copy
	drive_stop
	# the machine that it is for, in its ELF header: aarch64
	printf '\xb7\x00' | dd of="$BATS_TEST_TMPDIR/fettle-agent" bs=1 seek=18 conv=notrunc 2>/dev/null
	drive_start "$BATS_TEST_TMPDIR/fettle-agent"
	submit "$(new_token)" "$B" output="$BATS_TEST_TMPDIR/second.out"
	say until ended 120 "$id"
	expect "$id ended failed 127 *"
	grep -q "fettle: the agent for $(uname -m) is missing on .*: there is no $BATS_TEST_TMPDIR/fettle-agent-$(uname -m)" "$BATS_TEST_TMPDIR/second.out"
	drive_stop
}

@test "a setting that only the ranks of the first node get is not proved" {
	cat >"$BATS_TEST_TMPDIR/train.sh" <<-'END'
		[ "$SLURM_NODEID" = 0 ] || unset PLANTED_X
		exec planted --fixed --sleep-ms 10 --batch 32
	END
	cat >"$BATS_TEST_TMPDIR/dropped.lua" <<-END
		return {
			name = "dropped", scheduler = "slurm", mode = "quick", rounds = 1, seed = 1,
			workload = { command = { "sh", "$BATS_TEST_TMPDIR/train.sh" }, window = { warmup_steps = 3, steps = 20 },
				metrics = { file = true }, limits = { trial_s = 60 } },
			objective = { metric = "throughput_samples_per_s", stat = "median" },
			knobs = { { name = "x", env = "PLANTED_X", class = "neutral", values = { "1" }, proof = { level = "delivered" } } },
			resources = { nodes = 2, tasks_per_node = 1, launcher = "srun" },
			blocks = { aa = 0, final = 0, soak = 0 },
		}
	END
	run "$FETTLE" run -q -w "$WS" "$BATS_TEST_TMPDIR/dropped.lua"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *'invalid'*'not delivered: PLANTED_X should be 1 in rank 1'*'and is not set'* ]]
	# the map of ranks, and what was sampled on the second node
	[ "$(sql "SELECT count(*) FROM effective WHERE key = 'node' AND rank IN (0, 1)")" = \
		"$(sql "SELECT 2 * count(*) FROM trial")" ]
	[ "$(sql "SELECT count(*) FROM (SELECT trial FROM effective WHERE key = 'node' GROUP BY trial HAVING min(value) = max(value))")" = 0 ]
	node=$(sql "SELECT value FROM effective WHERE key = 'node' AND rank = 1 LIMIT 1")
	[ "$(sql "SELECT count(*) >= 1 FROM v_metric WHERE labels = 'node=$node' AND metric = 'sampler_cpu_pct' AND stat = 'mean'")" = 1 ]
	[ "$(sql "SELECT count(*) >= 1 FROM v_metric WHERE labels = 'node=$node' AND metric = 'node_clock_offset_ms'")" = 1 ]
}
