#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# bench.bats : rows of the table of `make bench`.

bats_require_minimum_version 1.5.0

setup() {
	TOP=$BATS_TEST_DIRNAME/../..
	cd "$TOP" || return 1
	export BENCH_RESULTS=$BATS_TEST_TMPDIR/results.jsonl
}

# what a benchmark says with row()
row() {
	(
		. tests/bench/lib.sh
		# shellcheck disable=SC2034 # of row()
		dir=$BATS_TEST_TMPDIR
		row "$@"
	)
}

@test "a ratio is taken round by round, and a goal is of its median" {
	run -0 row trials ms '1 2 4' '20 50 40' 'peer 1.0' 'ratio>=15' 'fettle<=2'
	[[ $output == *'| trials | ms | 2 [1, 4] | 40 [20, 50] | peer 1.0 | 20 [10, 25] | ratio at least 15; at most 2 | met |' ]]
	run -0 row trials ms '1 2 4' '20 50 40' 'peer 1.0' 'ratio>=15' 'fettle<=1.9'
	[[ $output == *'| **missed** |' ]]
	run -0 jq -sc 'map([.ratio, (.goals | map(.met))])' "$BENCH_RESULTS"
	[ "$output" = '[[[20,25,10],[true,true]],[[20,25,10],[true,false]]]' ]
}

@test "a peer that is absent is said to be, and is no goal missed" {
	run -0 row trials ms '1 2' '' 'peer 1.0: absent (no network)' 'ratio>=15'
	[[ $output == *'| 1.5 [1, 2] | - | peer 1.0: absent (no network) | - | ratio at least 15 | not measured |' ]]
	# without a Python that could make an environment, in a build folder of its own
	printf '#!/bin/sh\necho no ensurepip >&2\nexit 1\n' >"$BATS_TEST_TMPDIR/python3"
	chmod +x "$BATS_TEST_TMPDIR/python3"
	PATH=$BATS_TEST_TMPDIR:$PATH FETTLE_BUILD=$BATS_TEST_TMPDIR/build/release run -0 sh tests/bench/peers.sh optuna
	[[ $output == 'optuna '*': absent (no ensurepip)' ]]
}

# efficiency COMMAND ARGUMENT... : the peers of tests/bench/efficiency.sh
efficiency() {
	FETTLE_RECIPES=$PWD/recipes "${FETTLE_BUILD:-$PWD/build/release}/tests/bench/efficiency" "$@"
}
# surface FILE : $BATS_TEST_TMPDIR/recipe.lua and truth
surface() {
	jq -r -f tests/bench/surfaces/recipe.jq "$1" >"$BATS_TEST_TMPDIR/recipe.lua"
	jq .truth "$1" >"$BATS_TEST_TMPDIR/truth"
}

@test "surfaces with known truth can be run, and what was recorded gives that truth" {
	python3 tests/bench/surfaces/fit.py --check tests/bench/surfaces/*.json
	for file in tests/bench/surfaces/*.json; do
		surface "$file"
		best=$(jq -r '.truth.effects | to_entries | max_by(.value) // {key: "", value: 0}
			| select(.value > 0) | .key | gsub("--"; "the_")' "$file")
		printf 'x\t1\t1\t\t\t\t1\t%s\n' "$best" >"$BATS_TEST_TMPDIR/record"
		efficiency judge "$BATS_TEST_TMPDIR/recipe.lua" "$BATS_TEST_TMPDIR/truth" <"$BATS_TEST_TMPDIR/record" >"$BATS_TEST_TMPDIR/out"
		if [ -n "$best" ]; then ! grep -q '"gain":0,' "$BATS_TEST_TMPDIR/out"; else grep -q '"gain":0,' "$BATS_TEST_TMPDIR/out"; fi || false
	done
}

@test "peers find what stands out without noise, and with noise alone most of them find something" {
	jq -n '{title: "tiny", knobs: {a: ["1"], b: ["1"]}, truth: {sd_run: 0, sd_alloc: 0, trial_s: 10, effects: {"--a=1": 0.05}}}' >"$BATS_TEST_TMPDIR/tiny.json"
	surface "$BATS_TEST_TMPDIR/tiny.json"
	cd "$BATS_TEST_TMPDIR"
	jq '.effects = {}' truth >null
	peers() { FETTLE_RECIPES=$BATS_TEST_DIRNAME/../../recipes "${FETTLE_BUILD:-$BATS_TEST_DIRNAME/../../build/release}/tests/bench/efficiency" peers recipe.lua truth null 1 100 1 1 20 >rows; }
	peers
	run -0 jq -c 'select(.procedure | endswith("each") | not) | [.procedure, .runs, .best, .bad, .null_wins, (100 * .gain | round)]' rows
	[ "$output" = '["best of 1",3,100,0,0,5]
["best of 3",9,100,0,0,5]
["Welch, n = 2, the best",6,100,0,0,5]
["Welch, n = 2, all that pass",6,100,0,0,5]' ]
	jq '.sd_run = 0.02' null >noise && mv noise null
	peers
	# two of three arms are not the default; Bonferroni's share is 5 % at most
	run -0 jq -s '[.[0].null_wins > 50 and .[0].null_wins < 85, .[2].null_wins < 15] | all' rows
	[ "$output" = true ]
}

@test "a recommendation is judged by its parts" {
	jq -n '{title: "tiny", knobs: {a: ["1"], b: ["1", "2"]}, truth: {effects: {"--a=1": 0.05, "--b=2": -0.1}}}' >"$BATS_TEST_TMPDIR/tiny.json"
	surface "$BATS_TEST_TMPDIR/tiny.json"
	printf '%s\t8\t24\t%s\t%s\t%s\t1\t%s\n' part 0.06 0.04 0.08 'the_a=1 the_b=1' worse 0.01 0.005 0.02 the_b=2 >"$BATS_TEST_TMPDIR/records"
	efficiency judge "$BATS_TEST_TMPDIR/recipe.lua" "$BATS_TEST_TMPDIR/truth" <"$BATS_TEST_TMPDIR/records" >"$BATS_TEST_TMPDIR/out"
	run -0 jq -c '[.procedure, .best, .not_real, .idle, .covered, (1000 * .bias | round)]' "$BATS_TEST_TMPDIR/out"
	[ "$output" = '["part",1,0,1,1,10]
["worse",0,1,1,0,110]' ]
	printf 'x\t1\t1\t\t\t\t1\tthe_c=1\n' >"$BATS_TEST_TMPDIR/records"
	run efficiency judge "$BATS_TEST_TMPDIR/recipe.lua" "$BATS_TEST_TMPDIR/truth" <"$BATS_TEST_TMPDIR/records"
	[ "$status" -eq 4 ]
	[[ $output == *'no such setting: the_c=1'* ]]
}
