#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Workloads that are bad as a whole, or bad only in what one arm reports: each fault is in the report
# (Markdown) with the trial's log path, bounded in time and space, and the campaign goes on where it can.
# planted-faults.bats has those of single arms.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	FETTLE=${FETTLE:-$PWD/build/fettle}
	export PATH=${FETTLE_BUILD:-$PWD/build/release}/tests/workloads:$PATH
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
	REPORT=$FETTLE_WORKSPACE/reports/campaign-1.md
}

sql() { sqlite3 "$FETTLE_WORKSPACE/fettle.db" "$1"; }

nobody_left() {
	for p in $(pgrep -x planted); do
		! tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" | grep -q "^FETTLE_TRIAL_DIR=$FETTLE_WORKSPACE" || return 1
	done
}

# recipe COMMAND KNOBS [FIELDS]
recipe() {
	cat >"$BATS_TEST_TMPDIR/own.lua" <<-END
		return { name = "own", workload = { command = { $1 }, metrics = { file = true },
			window = { warmup_steps = 3, steps = 20 }, limits = { trial_s = 2, log_mib = 1 } },
			objective = { metric = "throughput_samples_per_s", stat = "median" }, guards = { loss = 0.01 },
			knobs = { $2 }, mode = "quick", rounds = 1, blocks = { aa = 2, final = 2, soak = 1 }, seed = 1, $3 }
	END
}

campaign() {
	run "$FETTLE" run -q "$BATS_TEST_TMPDIR/own.lua"
	echo "$output"
}

fast='{ name = "fast", arg = "--fast", flag = true, class = "neutral", default = false, values = { true } }'

# The campaign ended after one block with status 4, and the report says why and where to look.
failed_after_one_block() {
	[ "$status" -eq 4 ]
	[ "$(sql "SELECT state FROM campaign")" = failed ]
	[ "$(sql "SELECT count(*) FROM attempt")" = 1 ]
	grep -q "the baseline measured nothing: $1" "$REPORT"
	grep -qE '`blocks/1\.1/t0[0-9]/out`' "$REPORT"
	log=$(grep -oE 'blocks/1\.1/t0[0-9]/out' "$REPORT" | head -1)
	[ -e "$FETTLE_WORKSPACE/$log" ]
	# A failed campaign stays failed: resume says so again and measures nothing.
	run "$FETTLE" resume -q 1
	[ "$status" -eq 4 ]
	[ "$(sql "SELECT count(*) FROM attempt")" = 1 ]
	nobody_left
}

@test "a workload that prints steps and no metric at all" {
	recipe '"planted", "--no-metric"' "$fast"
	campaign
	failed_after_one_block 'no value of throughput_samples_per_s (median) in the measured window'
}

@test "a workload whose loss is not a number" {
	recipe '"planted", "--nan"' "$fast"
	campaign
	failed_after_one_block 'loss is nan at step'
}

@test "a workload that hangs" {
	recipe '"planted", "--hang"' "$fast"
	start=$SECONDS
	campaign
	[ $((SECONDS - start)) -lt 60 ]
	failed_after_one_block 'ran longer than 2 s'
}

@test "a workload that exits at once, well or not" {
	recipe '"true"' "$fast"
	campaign
	failed_after_one_block 'ended after 0 of 23 steps'
	rm -r "$FETTLE_WORKSPACE"
	recipe '"sh", "-c", "echo no such module >&2; exit 3"' "$fast"
	campaign
	failed_after_one_block 'exited with 3; its last line: "no such module"'
}

@test "a workload that leaves processes behind: named, ended, and the campaign goes on" {
	recipe '"planted", "--fork-daemon"' "$fast"
	campaign
	[ "$status" -eq 0 ]
	[ "$(sql "SELECT state FROM campaign")" = "done" ]
	grep -qE 'it left 1 process running, which was ended \| `blocks/[0-9]+\.1/t[0-9]+/out`' "$REPORT"
	[ "$(sql "SELECT count(*) FROM v_trial WHERE state <> 'ok'")" = 0 ]
	nobody_left
}

@test "a workload that prints too much and writes much: named, bounded, and the campaign goes on" {
	recipe '"planted", "--print-gb", "0.1", "--fill-disk", "100"' "$fast"
	campaign
	[ "$status" -eq 0 ]
	[ "$(sql "SELECT state FROM campaign")" = "done" ]
	grep -qE 'it printed 1[0-9]{8} bytes, of which head and tail are kept \| `blocks/[0-9]+\.1/t[0-9]+/out`' "$REPORT"
	# a megabyte of output a trial; what was written to its own directories is gone with the trial
	trials=$(sql "SELECT count(*) FROM trial")
	[ "$(du -sm "$FETTLE_WORKSPACE" | cut -f1)" -lt $((trials * 2 + 10)) ]
}

# What a guard asks for is measured in the baseline only: nothing shows that the arm is harmless.
@test "the metric of a guard is absent in one arm only: that arm is not accepted" {
	cat >"$BATS_TEST_TMPDIR/train.sh" <<-'END'
		#!/bin/sh
		# train.sh [--mute]: a step in 20 ms, with --mute in half of that and without its loss
		s=0.02
		[ "$1" != --mute ] || s=0.01
		for i in 1 2 3 4 5 6 7 8; do
			sleep $s
			if [ "$1" = --mute ]; then
				echo "{\"step\": $i, \"throughput_samples_per_s\": 200}"
			else
				echo "{\"step\": $i, \"throughput_samples_per_s\": 100, \"loss\": 2.0}"
			fi >>"$FETTLE_METRICS"
		done
	END
	chmod +x "$BATS_TEST_TMPDIR/train.sh"
	recipe "\"$BATS_TEST_TMPDIR/train.sh\"" \
		'{ name = "mute", arg = "--mute", flag = true, class = "neutral", default = false, values = { true } }'
	sed -i 's/steps = 20/steps = 4/' "$BATS_TEST_TMPDIR/own.lua"
	campaign
	[ "$status" -eq 0 ]
	[ "$(sql "SELECT outcome FROM v_hypothesis WHERE knob = 'mute'")" = inconclusive ]
	grep -q 'guard loss: no pair of trials has this metric' "$REPORT"
	[ "$(sql "SELECT count(*) FROM fix")" = 0 ]
}

@test "a workload that leaves a pipe where its metrics belong: an empty file, not waited for" {
	recipe '"sh", "-c", "rm -f $FETTLE_METRICS; mkfifo $FETTLE_METRICS"' "$fast"
	run timeout -s KILL 120 "$FETTLE" run -q "$BATS_TEST_TMPDIR/own.lua"
	echo "$output"
	failed_after_one_block 'ended after 0 of 23 steps'
}

@test "a pipe among the files that are read is no end of the work" {
	cd "$BATS_TEST_TMPDIR" || return 1
	mkfifo pipe.lua
	recipe '"true"' "$fast" 'schedule = "night"'
	for words in 'check pipe.lua' 'nightly . --plan' 'probe pipe.lua' 'init pipe.lua' 'history import pipe.lua' 'diagnose pipe.lua'; do
		# shellcheck disable=SC2086 # words of our own
		run timeout -s KILL 60 "$FETTLE" $words
		echo "$words: $status: $output"
		[ "$status" -lt 5 ]
	done
}
