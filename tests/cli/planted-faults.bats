#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Workloads that go wrong: each fault is named with its log, bounded in time and space, and the
# campaign goes on where it can. And a script that resumes by itself.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	FETTLE=${FETTLE:-$PWD/build/fettle}
	export PATH=${FETTLE_BUILD:-$PWD/build/release}/tests/workloads:$PATH
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
}

sql() { sqlite3 "$FETTLE_WORKSPACE/fettle.db" "$1"; }

# why KNOB: the state and the reason of the only hypothesis about it
why() { sql "SELECT state || ': ' || reason FROM v_hypothesis WHERE knob = '$1'"; }

# No process of the trials of this test is left: their environment names its directory.
nobody_left() {
	for p in $(pgrep -x planted); do
		! tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" | grep -q "^FETTLE_TRIAL_DIR=$FETTLE_WORKSPACE" || return 1
	done
}

recipe() { # recipe COMMAND KNOBS: a campaign of its own
	cat >"$BATS_TEST_TMPDIR/own.lua" <<-END
		return { name = "own", workload = { command = { "planted", $1 }, metrics = { file = true },
			window = { warmup_steps = 3, steps = 20 }, limits = { trial_s = 2, log_mib = 1 } },
			objective = { metric = "throughput_samples_per_s", stat = "median" }, guards = { loss = 0.01 },
			knobs = { $2 }, mode = "quick", rounds = 1, blocks = { aa = 2, final = 2, soak = 1 }, seed = 1 }
	END
}

@test "arms that go wrong are each named with their log, and the good arm is accepted" {
	"$FETTLE" run -q tests/fixtures/recipes/planted-faults.lua >"$BATS_TEST_TMPDIR/out" 2>&1
	[ "$(sql "SELECT outcome FROM v_hypothesis WHERE knob = 'fast'")" = accepted ]
	[[ $(why hang) == "screened_out: 2 of 2 trials failed: ran longer than 3 s"*"log: blocks/"* ]]
	[[ $(why crash) == "screened_out: 2 of 2 trials failed: killed by signal 11"*"log: blocks/"* ]]
	[[ $(why exit) == "screened_out: 2 of 2 trials failed: exited with 3"*"log: blocks/"* ]]
	[[ $(why nan) == "screened_out: 2 of 2 trials failed: loss is nan at step 4"*"log: blocks/"* ]]
	[[ $(why no_metric) == "screened_out: 2 of 2 trials failed: no value of throughput_samples_per_s"*"log: blocks/"* ]]
	[[ $(why silent) == "screened_out: 2 of 2 trials failed: "*"log: blocks/"* ]]
	# Every path that the database names is there.
	sql "SELECT DISTINCT log_path FROM v_fault" | while read -r path; do [ -e "$FETTLE_WORKSPACE/$path" ]; done
	# A hang ends at its limit, a gigabyte of output stays bounded, a process that fled is gone.
	[ "$(sql "SELECT max(wall_s) < 30 FROM v_trial")" = 1 ]
	[ -z "$(find "$FETTLE_WORKSPACE/blocks" -name out -size +2M)" ]
	[ "$(sql "SELECT count(*) FROM v_trial WHERE arm_label LIKE 'daemon%' AND state = 'ok'")" = 2 ]
	nobody_left
}

@test "a baseline that prints nothing ends the campaign with the reason" {
	recipe '"--silent"' '{ name = "fast", arg = "--fast", flag = true, class = "neutral", default = false, values = { true } }'
	run "$FETTLE" run -q "$BATS_TEST_TMPDIR/own.lua"
	[ "$status" -eq 4 ]
	[[ $output == *"the baseline measured nothing"*"log: blocks/1.1/"* ]]
	[ "$(sql "SELECT state FROM campaign")" = failed ]
	nobody_left
}

@test "one candidate whose trials all fail is rejected by the guard on failures" {
	recipe '"--work-ms", "5"' '{ name = "crash", arg = "--crash", flag = true, class = "neutral", default = false, values = { true } }'
	"$FETTLE" run -q "$BATS_TEST_TMPDIR/own.lua" >"$BATS_TEST_TMPDIR/out" 2>&1
	[ "$(sql "SELECT outcome FROM v_hypothesis WHERE knob = 'crash'")" = "rejected: guard" ]
	grep -q 'killed by signal 11.*log: blocks/' "$BATS_TEST_TMPDIR/out"
}

@test "a workload that ignores TERM is killed when its window is full" {
	recipe '"--ignore-term"' ''
	"$FETTLE" run -q "$BATS_TEST_TMPDIR/own.lua" >"$BATS_TEST_TMPDIR/out" 2>&1
	[ "$(sql "SELECT count(*) FROM v_trial WHERE kind = 'timed' AND state = 'ok'")" = 4 ]
	nobody_left
}

@test "a script that resumes by itself gives equal trials, and its original checkpoint stays" {
	cp tests/fixtures/recipes/planted-resume.lua "$BATS_TEST_TMPDIR/"
	echo 'planted checkpoint after step 100' >"$BATS_TEST_TMPDIR/original.ckpt"
	"$FETTLE" run -q "$BATS_TEST_TMPDIR/planted-resume.lua" >"$BATS_TEST_TMPDIR/out" 2>&1
	[ "$(cat "$BATS_TEST_TMPDIR/original.ckpt")" = 'planted checkpoint after step 100' ]
	[ "$(ls "$BATS_TEST_TMPDIR")" = "$(printf '%s\n' original.ckpt out planted-resume.lua ws)" ]
	# Every trial began at the same step and saved for itself only; so the last loss is the same.
	cat "$FETTLE_WORKSPACE"/blocks/*/t*/metrics.jsonl | jq -s 'map(select(.step == 101)) | length' >"$BATS_TEST_TMPDIR/first"
	find "$FETTLE_WORKSPACE/blocks" -name metrics.jsonl | wc -l | diff - "$BATS_TEST_TMPDIR/first"
	[ "$(sql "SELECT count(DISTINCT value) FROM v_metric WHERE metric = 'loss' AND stat = 'last'")" = 1 ]
}

@test "settings that lint refuses are never tried, however fast they would look" {
	cat >"$BATS_TEST_TMPDIR/own.lua" <<-'END'
		local function env(name, value)
			return { name = name .. "_own", env = name, class = "neutral", values = { value } }
		end
		return { name = "own", objective = "trial_wall_s", workload = { command = { "true", "--hidden-size", 64 } },
			knobs = { env("NCCL_NCHANNELS", "8"), env("NCCL_BUFFSIZE", "16M"), env("nccl_algo", "Ring"),
				env("NCCL_P2P_LEVEL", "nvl"), env("OMP_NUM_THREAD", "4"), env("NCCL_IB_CUDA_SUPPORT", "1"),
				env("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:true"), env("CUDA_MODULE_LOADING", "lazy"),
				{ name = "hidden", arg = "--hidden-size", class = "neutral", values = { 128 } },
				env("MALLOC_ARENA_MAX", "2") },
			mode = "quick", rounds = 1, seed = 1, scheduler = "fake" }
	END
	cat >"$BATS_TEST_TMPDIR/truth.json" <<-'END'
		{"effects":{"NCCL_NCHANNELS=8":0.5,"NCCL_BUFFSIZE=16M":0.5,"nccl_algo=Ring":0.5,"NCCL_P2P_LEVEL=nvl":0.5,
		"OMP_NUM_THREAD=4":0.5,"NCCL_IB_CUDA_SUPPORT=1":0.5,"CUDA_MODULE_LOADING=lazy":0.5,"MALLOC_ARENA_MAX=2":0.3,
		"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:true":0.5,"--hidden-size":0.5},"sd_run":0.01}
	END
	"$FETTLE" run -q --fake "$BATS_TEST_TMPDIR/truth.json" "$BATS_TEST_TMPDIR/own.lua" >"$BATS_TEST_TMPDIR/out"
	cat "$BATS_TEST_TMPDIR/out"
	[ "$(sql "SELECT count(DISTINCT knob) FROM v_hypothesis WHERE state = 'linted_out'")" = 9 ]
	[ "$(sql "SELECT DISTINCT knob FROM v_hypothesis WHERE state <> 'linted_out'")" = MALLOC_ARENA_MAX_own ]
	[[ $(why hidden) == "linted_out: "*"another model"* ]]
	[[ $(why NCCL_BUFFSIZE_own) == "linted_out: "*"is read as 16"*"write: NCCL_BUFFSIZE=16777216" ]]
	grep -q 'NCCL_NCHANNELS.*linted out' "$BATS_TEST_TMPDIR/out"
}

@test "a campaign without a value left, or whose own settings are wrong, is named with status 2 and not begun" {
	recipe '"--work-ms", "5"' '{ name = "threads", env = "NCCL_THREADS", class = "neutral", values = { 64, 128 } }'
	for verb in run plan check; do
		run "$FETTLE" "$verb" "$BATS_TEST_TMPDIR/own.lua"
		[ "$status" -eq 2 ]
		[[ $output == *"own.lua:"*"no value is left"*"NCCL_NTHREADS=64"* ]]
	done
	recipe '"--work-ms", "5"' '"OMP_NUM_THREADS"'
	sed -i 's/metrics = { file = true }/env = { NCCL_BUFSIZE = 1 }, &/' "$BATS_TEST_TMPDIR/own.lua"
	run "$FETTLE" run "$BATS_TEST_TMPDIR/own.lua"
	[ "$status" -eq 2 ]
	[[ $output == *"NCCL_BUFSIZE=1"*"write: NCCL_BUFFSIZE=1"*"--anyway insists"* ]]
	[ ! -e "$FETTLE_WORKSPACE" ]
	"$FETTLE" plan --anyway "$BATS_TEST_TMPDIR/own.lua"
}
