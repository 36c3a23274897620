#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Campaigns whose truth is planted (tests/fixtures/recipes: times as planned, with noise), through the real agent on this
# machine: what is planted must come out.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	FETTLE=${FETTLE:-$PWD/build/fettle}
	export PATH=${FETTLE_BUILD:-$PWD/build/release}/tests/workloads:$PATH
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
}

campaign() {
	"$FETTLE" run -q "tests/fixtures/recipes/planted-$1.lua" >"$BATS_TEST_TMPDIR/out" 2>&1 || {
		cat "$BATS_TEST_TMPDIR/out"
		return 1
	}
}

sql() { sqlite3 "$FETTLE_WORKSPACE/fettle.db" "$1"; }

# outcome KNOB: the last verdict about it, or its state when it was never tested
outcome() { sql "SELECT coalesce(outcome, state) FROM v_hypothesis WHERE knob = '$1' ORDER BY hypothesis DESC LIMIT 1"; }

@test "a knob that takes 25 % off the step is accepted, measured again and written down" {
	campaign good
	[ "$(outcome fast)" = accepted ]
	[ "$(sql "SELECT count(*) FROM v_hypothesis WHERE outcome = 'accepted'")" = 1 ]
	# a third more samples a second, within what noise of this machine may do to it
	[ "$(sql "SELECT est BETWEEN 0.2 AND 0.5 FROM v_campaign")" = 1 ]
	[ "$(sql "SELECT fix_blocks FROM v_campaign")" = 4 ]
	grep -q 'fast false -> true: accepted' "$BATS_TEST_TMPDIR/out"
	grep -q 'effect unproved' "$BATS_TEST_TMPDIR/out"
	[ -s "$FETTLE_WORKSPACE/reports/campaign-1.md" ]
	# A/A, screen and confirm are fresh blocks: none counts in two stages
	[ "$(sql "SELECT count(*) FROM (SELECT dir FROM attempt GROUP BY dir HAVING count(*) > 1)")" = 0 ]
}

@test "a knob that adds 30 % to the step is rejected as worse" {
	campaign harmful
	[ "$(outcome slow)" = "rejected: worse" ]
	[ "$(sql "SELECT hi < 0 FROM v_hypothesis WHERE knob = 'slow'")" = 1 ]
	[ -z "$(sql "SELECT state FROM fix WHERE state LIKE '%validated%'")" ]
}

@test "a knob that requires an acknowledgement and that nothing reads is invalid, and spends no alpha" {
	campaign unread
	[ "$(outcome unread)" = invalid ]
	sql "SELECT reason FROM verdict WHERE outcome = 'invalid'" | grep -q 'not acknowledged.*unread = fast'
	[ "$(sql "SELECT coalesce(sum(alpha_spent), 0) FROM verdict WHERE outcome = 'invalid'")" = 0.0 ]
}

@test "a knob that the workload reads and acknowledges is accepted, with the line as evidence" {
	campaign read
	[ "$(outcome speed)" = accepted ]
	! grep -q 'effect unproved' "$BATS_TEST_TMPDIR/out" || false
	[ "$(sql "SELECT DISTINCT value FROM effective WHERE key = 'ack.speed'")" = "planted: PLANT_SPEED set by environment to fast" ]
}

@test "a knob that is faster and worsens the loss is rejected by its guard" {
	campaign loss
	[ "$(outcome loss_bias)" = "rejected: guard" ]
	sql "SELECT reason FROM v_experiment WHERE knob = 'loss_bias'" | grep -q 'loss (last): worse by +10'
}

@test "a larger batch is accepted only until a long run has shown that training converges" {
	campaign batch
	[ "$(outcome batch)" = accepted ]
	[ "$(sql "SELECT pending_convergence FROM v_experiment WHERE knob = 'batch'")" = 1 ]
	grep -q 'batch 32 -> 64: accepted, pending convergence' "$BATS_TEST_TMPDIR/out"
	! grep -q 'validated' <<<"$(sql "SELECT state FROM fix")" || false
}

@test "knobs that do nothing: none is accepted" {
	campaign null
	[ "$(sql "SELECT count(*) FROM v_hypothesis")" -ge 4 ]
	[ "$(sql "SELECT count(*) FROM verdict WHERE outcome = 'accepted'")" = 0 ]
	[ "$(sql "SELECT count(*) FROM v_hypothesis WHERE state = 'tested'")" -ge 1 ]
}

# Each costs 0.6 % of the loss and is accepted under a margin of 1 %; both together cost 1.2 %.
@test "gains whose losses add up beyond the margin: the fix breaks the guard, and recommend refuses it" {
	cat >"$BATS_TEST_TMPDIR/train.sh" <<-'END'
		#!/bin/sh
		for step in 1 2 3 4; do
			sleep 0.1
			echo "{\"step\": $step, \"throughput_samples_per_s\": $((100 + 30 * A + 30 * B)), \"loss\": $((2000 + 12 * A + 12 * B))}"
		done >>"$FETTLE_METRICS"
	END
	chmod +x "$BATS_TEST_TMPDIR/train.sh"
	cat >"$BATS_TEST_TMPDIR/c.lua" <<-END
		return { name = "c", workload = { command = { "$BATS_TEST_TMPDIR/train.sh" }, env = { A = 0, B = 0 }, metrics = { file = true },
			window = { warmup_steps = 1, steps = 3 } },
			objective = "throughput_samples_per_s", guards = { loss = 0.01 },
			knobs = {
				{ name = "A", env = "A", default = 0, values = { 1 }, class = "neutral" },
				{ name = "B", env = "B", default = 0, values = { 1 }, class = "neutral" },
			},
			mode = "quick", rounds = 2, warmup_trials = 0, blocks = { aa = 2, final = 3, soak = 1 } }
	END
	FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/own
	export FETTLE_WORKSPACE
	run "$FETTLE" run -q "$BATS_TEST_TMPDIR/c.lua"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(sqlite3 "$FETTLE_WORKSPACE/fettle.db" "SELECT wins, fix FROM v_campaign")" = '2|rejected: guard' ]
	[[ $output == *'rejected: guard, +60.0 % '*'guard loss (last): worse by +1.20 %'* ]]
	run "$FETTLE" recommend
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *'the fix breaks a guard: guard loss (last): worse by +1.20 % [1.20, 1.20], margin 1.00 %'* ]]
	[[ $output != *'export '* ]]
	run "$FETTLE" recommend --force
	[ "$status" -eq 0 ]
	[[ $output == *'!!!! REJECTED: this fix breaks a guard.'* ]]
}

@test "a knob of the catalogue on a script that knows nothing of fettle: proved where it acts, refuted where its effect is taken out" {
	cd "$BATS_TEST_TMPDIR"
	# Readers of a batch, as many as OMP_NUM_THREADS; TURN says whether two of them may read at once.
	cat >both.py <<-'END'
		import os, threading, time
		from concurrent.futures import ThreadPoolExecutor
		readers = ThreadPoolExecutor(int(os.environ.get("OMP_NUM_THREADS", "1")))
		turn = threading.Semaphore(TURN)
		def read(part):
		    with turn:
		        time.sleep(0.01)
		for step in range(1, 41):
		    list(readers.map(read, range(2)))
		    print("step", step, flush=True)
	END
	cat >threads.lua <<-'END'
		return {
			name = "threads", objective = "throughput_steps_per_s", mode = "quick", rounds = 1, min_effect = 0.2,
			warmup_trials = 0, blocks = { aa = 3, final = 2, soak = 0 },
			workload = { command = { "/usr/bin/python3", "train.py" }, env = { OMP_NUM_THREADS = "1" },
				window = { warmup_steps = 3, steps = 20, pattern = "^step " } },
			knobs = { OMP_NUM_THREADS = { 2 } },
		}
	END
	sed 's/TURN/2/' both.py >train.py
	"$FETTLE" run -q threads.lua
	[ "$(outcome OMP_NUM_THREADS)" = accepted ]
	[ "$(sql "SELECT est > 0.3 FROM v_hypothesis WHERE outcome = 'accepted'")" = 1 ]
	[ -n "$(sql "SELECT state FROM fix")" ]
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/without
	sed 's/TURN/1/' both.py >train.py
	"$FETTLE" run -q threads.lua
	outcome OMP_NUM_THREADS # equivalent, unless this machine is so busy that it is not told
	[ "$(sql "SELECT count(*) FROM v_hypothesis WHERE outcome IN ('accepted', 'invalid')")" = 0 ]
	[ "$(sql "SELECT count(*) FROM fix")" = 0 ]
	[ "$(sql "SELECT count(*) FROM effective WHERE key = 'env.OMP_NUM_THREADS' AND value = '2'")" -ge 1 ]
}
