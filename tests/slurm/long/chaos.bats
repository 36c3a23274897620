# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # chaos_run sets faults, kills and starts
# $CHAOS_BLOCKS (200) blocks over four nodes of a cluster on which something breaks every few seconds, fettle itself among it: in the end each
# slot was measured exactly once, and nothing is left. LONG=1; CHAOS_SEED=N: another sequence of faults.

setup_file() {
	FETTLE_CHAOS_BASE=$(mktemp -d /tmp/fettle-chaos-XXXXXX)
	export FETTLE_CHAOS_BASE
	FETTLE_CLUSTER_OWNER=$$ "$BATS_TEST_DIRNAME/../cluster.sh" start "$FETTLE_CHAOS_BASE/c" MessageTimeout=5 SlurmdTimeout=10
	eval "$("$BATS_TEST_DIRNAME/../cluster.sh" env "$FETTLE_CHAOS_BASE/c")"
}

teardown_file() {
	"$BATS_TEST_DIRNAME/../cluster.sh" stop "$FETTLE_CHAOS_BASE/c"
	rm -rf "$FETTLE_CHAOS_BASE"
}

setup() {
	load ../common
	load ../campaign
	load chaos
	WS=$BATS_TEST_TMPDIR/ws
	RECIPE=$BATS_TEST_TMPDIR/chaos.lua
	SEED=${CHAOS_SEED:-1} BLOCKS=${CHAOS_BLOCKS:-200}
	# each run of the workload leaves a line
	printf '#!/bin/sh\necho "$FETTLE_TRIAL_DIR" >>"%s"\nexec sleep 1.2\n' "$BATS_TEST_TMPDIR/ran" >"$BATS_TEST_TMPDIR/work"
	chmod +x "$BATS_TEST_TMPDIR/work"
	cat >"$RECIPE" <<-END
		return {
			name = "chaos",
			workload = { command = { "$BATS_TEST_TMPDIR/work" }, workdir = "/", limits = { trial_s = 60 } },
			objective = { metric = "trial_wall_s", stat = "value" },
			resources = { launcher = "exec", partition = "low" },
			warmup_trials = 0,
			mode = "quick",
			blocks = { aa = $BLOCKS, final = 0, soak = 0 },
			blocks_per_allocation = 5,
			budget = { stuck_min = 0.5 },
			scheduler = "slurm",
			seed = $SEED,
		}
	END
}

teardown() {
	cat "$BATS_TEST_TMPDIR/chaos"
	tail -n 60 "$BATS_TEST_TMPDIR/out"
	pkill -9 -f "fettle .* $WS" || true
	mend
	end_all_jobs
}

no_trial() { ! grep -qzs "^FETTLE_TRIAL_DIR=$WS" /proc/[0-9]*/environ; }

query() { sqlite3 "$WS/fettle.db" "$1"; }

# What slurmctld took up again from a state that it had saved earlier ends when its nodes have registered.
queue_is_empty() {
	local i left
	for ((i = 0; i < 420; i++)); do
		left=$(squeue -h 2>/dev/null) && [ -z "$left" ] && return 0
		sleep 1
	done
	squeue
	return 1
}

@test "chaos" {
	chaos_run
	echo "# seed $SEED: $faults faults, $kills kills of fettle, $starts starts," \
		"$(query "SELECT count(*) || ' attempts, of which ' || sum(state = 'void') || ' void, ' || sum(state = 'lost') || ' lost'
			FROM attempt")," \
		"$(query "SELECT group_concat(n) FROM (SELECT outcome || ' ' || count(*) AS n FROM allocation GROUP BY outcome)")" |
		tee -a "$BATS_TEST_TMPDIR/chaos" >&3
	# a short run only shows that it went through; how much strikes it is a matter of luck
	[ "$BLOCKS" -lt 200 ] || [ "$faults" -ge 20 ]
	[ "$BLOCKS" -lt 200 ] || [ "$kills" -ge 3 ]
	[ "$faults" -ge 1 ]
	[ "$(query "SELECT state FROM campaign")" = "done" ]
	[ "$(query "SELECT count(*) FROM block b WHERE EXISTS (SELECT 1 FROM attempt a WHERE a.block = b.id AND a.state = 'valid')")" = "$BLOCKS" ]
	# each slot of a block that counts was measured once
	[ -z "$(query "SELECT block FROM attempt WHERE state = 'valid' GROUP BY block HAVING count(*) > 1")" ]
	[ -z "$(query "SELECT s.block, s.idx, count(t.id) AS n FROM slot s JOIN attempt a ON a.block = s.block AND a.state = 'valid'
		LEFT JOIN trial t ON t.attempt = a.id AND t.slot = s.idx GROUP BY s.block, s.idx HAVING n <> 1")" ]
	# no trial's directory was run in twice, whatever Slurm started again
	[ -z "$(sort "$BATS_TEST_TMPDIR/ran" | uniq -d)" ]
	[ "$(query "SELECT count(*) FROM attempt WHERE state IN ('planned', 'submitted')")" = 0 ]
	[ "$(query "SELECT count(*) FROM event WHERE kind IN ('conflict', 'late')")" = 0 ]
	# no two jobs have one number, unless slurmctld lost the first and gave the number out again
	[ -z "$(query "SELECT job_id FROM allocation WHERE outcome <> 'vanished' GROUP BY job_id HAVING count(*) > 1")" ]
	[ "$(query 'PRAGMA integrity_check')" = ok ]
	[ -z "$(query 'PRAGMA foreign_key_check')" ]
	queue_is_empty
	wait_for no_process "$WS/blocks"
	# the trials of agents that were killed went with them
	wait_for no_trial
}
