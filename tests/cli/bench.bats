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
