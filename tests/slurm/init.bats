# SPDX-License-Identifier: GPL-2.0-or-later
# fettle init, end to end: a campaign from a script runs on the cluster. The ranks, which the script's own srun starts, have
# what the campaign says and not what the script exports; results stay where they were.

setup() {
	load common
	load campaign
	cp "$HERE"/../fixtures/sbatch/*.sbatch "$HERE"/../fixtures/sbatch/*.py "$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR" || return 1
	WS=$BATS_TEST_TMPDIR/ws
}

teardown() {
	end_all_jobs
	cluster wait
}

# The campaign NAME.lua with these knobs, and as few trials as there can be.
shorten() {
	awk -v knobs="$2" '/^\tknobs = \{/ { print "\tknobs = { " knobs " }, rounds = 1, warmup_trials = 0,"; skip = 1 }
		!skip; skip && /^\t},/ { skip = 0; print "\tblocks = { aa = " aa ", final = 0, soak = 0 }," }' aa="${3:-0}" "$1" |
		sed 's/warmup_steps = [0-9]*, steps = [0-9]*/warmup_steps = 3, steps = 20/' >short.lua
}

trials() {
	cat "$WS"/blocks/*/t*.json | jq -s -e "$1"
}

@test "a script with srun on two nodes: variables and arguments reach every rank, what is saved stays in the trial" {
	"$FETTLE" init srun.sbatch
	shorten srun.lua '{ name = "PACE", env = "PACE", class = "neutral", values = { "fast" } },
		knob("num_workers", { arg = "--num-workers", values = { 1 }, proof = "delivered" })'
	run "$FETTLE" run -w "$WS" short.lua
	echo "$output"
	[ "$status" = 0 ]
	[[ $output != *invalid* ]]
	# the script exports PACE=slow and says --num-workers 0: one setting of one arm at a time is another
	trials 'all(.state == "ok" and .ranks_expected == 2)'
	trials '[.[] | {arm, pace: (.ranks | map(select(.rank >= 0) | .env.PACE) | unique), workers: (.ranks | map(select(.rank >= 0) |
		.argv | .[length - (reverse | index("--num-workers"))]) | unique)} | "\(.pace | join("+")) \(.workers | join("+"))"] | unique ==
		["fast 0", "slow 0", "slow 1"]'
	trials 'map(select([.ranks[].rank] == [-1, 0, 1] and ([.ranks[].node] | unique | length) == 2)) | length >= 4'
	[ "$(sql "SELECT count(DISTINCT arm_label) FROM v_trial WHERE state = 'ok'")" -ge 3 ]
	# neither the results, nor the logs, nor what follows the launch
	[ ! -e results ] && [ ! -e train.log ] && [ ! -e rank-0.log ] && [ ! -e /tmp/never ]
	end_all_jobs
	wait_for no_process "$WS"
}

@test "a script of one process with PyTorch, and a task of an array" {
	[ -n "${LONG:-}" ] || return 0
	"$FETTLE" init conda.sbatch --pattern '^step (?<step>\d+): loss (?<loss>\S+)'
	grep -q 'guards = { loss = 0.01 }' conda.lua
	shorten conda.lua 'knob("num_workers", { arg = "--num-workers", values = { 1 } })' 2
	run "$FETTLE" run -w "$WS" short.lua
	echo "$output"
	[ "$status" = 0 ]
	[[ $output != *invalid* ]]
	trials 'all(.state == "ok" and .ranks[0].env.OMP_NUM_THREADS == "1")'
	[ "$(ls cnn-out)" = run.json ]
	"$FETTLE" init array.sbatch --array-index 2
	shorten array.lua '{ name = "PACE", env = "PACE", class = "neutral", values = { "fast" } }'
	WS=$BATS_TEST_TMPDIR/ws2
	run "$FETTLE" run -w "$WS" short.lua
	echo "$output"
	[ "$status" = 0 ]
	trials 'all(.ranks[0].argv | index("0.01") != null)'
	[ ! -e runs ]
}
