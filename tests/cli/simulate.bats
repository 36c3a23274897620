#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle simulate: whole campaigns against a declared truth, nothing on disk.

bats_require_minimum_version 1.5.0

setup() {
	FETTLE=${FETTLE:-$BATS_TEST_DIRNAME/../../build/release/fettle}
	cd "$BATS_TEST_DIRNAME/../.." || exit
	TEN=$PWD/tests/fixtures/recipes/ten.lua
}

without_time() {
	grep -v 'of processor time'
}

@test "a gain that is there is found, and nothing is left behind" {
	echo '{"sd_run": 0.01, "effects": {"K4=1": 0.1}}' >"$BATS_TEST_TMPDIR/truth.json"
	mkdir "$BATS_TEST_TMPDIR/empty"
	cd "$BATS_TEST_TMPDIR/empty"
	run -0 "$FETTLE" simulate "$TEN" --truth "$BATS_TEST_TMPDIR/truth.json" --campaigns 10 --seed 3
	[[ $output == *"10 campaigns of ten against"*"seed 3"* ]]
	[[ $output == *"true wins        10 of 10 campaigns: 100.00 %"* ]]
	[[ $output == *"K4=1 "*"+10.00%"* ]]
	[ -z "$(ls -A)" ]
}

@test "a seed gives the same again, in any shell" {
	"$FETTLE" simulate "$TEN" -n 5 -s 7 | without_time >"$BATS_TEST_TMPDIR/a"
	env -i UNUSUAL=1 OMP_NUM_THREADS=3 PATH=/usr/bin FETTLE_RECIPES="$PWD/recipes" "$FETTLE" simulate "$TEN" -n 5 -s 7 |
		without_time >"$BATS_TEST_TMPDIR/b"
	cmp "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
}

@test "JSON" {
	"$FETTLE" simulate "$TEN" -n 3 --json >"$BATS_TEST_TMPDIR/out"
	grep -q '"format":[[:space:]]*"fettle.simulate/1"' "$BATS_TEST_TMPDIR/out"
	grep -q '"campaigns":[[:space:]]*3,' "$BATS_TEST_TMPDIR/out"
}

@test "bad input says what would be right" {
	run -2 "$FETTLE" simulate "$TEN" --campaigns 0
	[[ $output == *"--campaigns wants a whole number from 1 to"* ]]
	echo '{"sd_runn": 0.01}' >"$BATS_TEST_TMPDIR/truth.json"
	run -2 "$FETTLE" simulate "$TEN" --truth "$BATS_TEST_TMPDIR/truth.json"
	[[ $output == *'"sd_runn" is no member (did you mean "sd_run"?)'* ]]
	sed 's/"throughput_samples_per_s"/{ metric = "my_metric", better = "up" }/' "$TEN" >"$BATS_TEST_TMPDIR/own.lua"
	run -2 "$FETTLE" simulate "$BATS_TEST_TMPDIR/own.lua" -n 1
	[[ $output == *"the truth says nothing about the objective my_metric"* ]]
}

@test "the table of verdicts can be made in pieces, and a row that is there is not made again" {
	export CAMPAIGNS=2 FETTLE
	without_cpu() { grep -v '"cpu_s"' "$1/row-$2.json"; }
	KEEP=$BATS_TEST_TMPDIR/a ROWS='1-2 15' sh tests/bench/verdicts.sh >"$BATS_TEST_TMPDIR/nothing"
	[ ! -s "$BATS_TEST_TMPDIR/nothing" ]
	KEEP=$BATS_TEST_TMPDIR/b ROWS=2 sh tests/bench/verdicts.sh
	diff <(without_cpu "$BATS_TEST_TMPDIR/a" 2) <(without_cpu "$BATS_TEST_TMPDIR/b" 2)
	! diff -q <(without_cpu "$BATS_TEST_TMPDIR/a" 1) <(without_cpu "$BATS_TEST_TMPDIR/a" 2) || false
	run -0 --separate-stderr env KEEP="$BATS_TEST_TMPDIR/a" ROWS=2 sh tests/bench/verdicts.sh
	[ -z "$stderr" ]
	KEEP=$BATS_TEST_TMPDIR/a ROWS=none sh tests/bench/verdicts.sh >"$BATS_TEST_TMPDIR/report"
	[ "$(grep -c '^| [0-9]' "$BATS_TEST_TMPDIR/report")" = 3 ]
	grep -q '^- 6 campaigns took' "$BATS_TEST_TMPDIR/report"
}
