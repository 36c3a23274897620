#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The ready campaigns: each says in its first ten lines what it asks, takes and needs, is fit to run, and finds on
# scheduler fake what was measured (tests/fixtures/truth).

bats_require_minimum_version 1.5.0

setup() {
	ROOT=$BATS_TEST_DIRNAME/../..
	FETTLE=${FETTLE_BUILD:-$ROOT/build/release}/fettle
	TRUTH=$ROOT/tests/fixtures/truth
	CAMPAIGNS=$(find "$ROOT/recipes/campaigns" -name '*.lua' ! -name demo.lua ! -name mini.lua -exec basename {} .lua \; | sort)
}

@test "each ready campaign says what it asks, how long it takes and what it needs" {
	for c in $CAMPAIGNS; do
		head=$(head -10 "$ROOT/recipes/campaigns/$c.lua")
		echo "$c"
		[ "$(grep -c '^-- ' <<<"$head")" -ge 4 ]
		grep -q '^-- .*?' <<<"$head"
		grep -qE '^-- About .* (minutes|hour|minutes a node)\b' <<<"$head"
		grep -q 'Needs ' <<<"$head"
		grep -q "name = \"$c\"" "$ROOT/recipes/campaigns/$c.lua"
		[ "$(sed -n 's/^	question = "\(.*\)",$/\1/p' "$ROOT/recipes/campaigns/$c.lua" | wc -w)" -ge 6 ]
	done
}

@test "each ready campaign is fit to run" {
	for c in $CAMPAIGNS; do
		run "$FETTLE" check "$ROOT/recipes/campaigns/$c.lua"
		echo "$output"
		[ "$status" -eq 0 ]
		[[ $output == *"fit to run"* ]]
	done
}

# won KNOB=VALUE: in how many of the ten campaigns
won() {
	jq --arg k "${1%%=*}" --arg v "${1#*=}" '.candidates[] | select(.knob == $k and .value == $v) | .won' out.json
}

@test "each ready campaign finds what was measured, and nothing that was not" {
	cd "$BATS_TEST_TMPDIR"
	[ "$(grep -v '^#' "$TRUTH/winners.tsv" | cut -f1)" = "$CAMPAIGNS" ]
	grep -v '^#' "$TRUTH/winners.tsv" | while IFS=$'\t' read -r c winner loser; do
		"$FETTLE" simulate "$ROOT/recipes/campaigns/$c.lua" -t "$TRUTH/$c.json" -n 10 --json >out.json
		echo "$c: $(jq -c '[.unfinished, .false_wins, .true_wins]' out.json)"
		jq -e '.unfinished == 0 and .false_wins == 0' out.json
		[ "$winner" = - ] || [ "$(won "$winner")" -ge 8 ]
		[ "$loser" = - ] || [ "$(won "$loser")" -eq 0 ]
	done
}

@test "nightly-health names the slow node" {
	cd "$BATS_TEST_TMPDIR"
	"$FETTLE" run -q -s fake --fake "$TRUTH/nightly-health.json" -w ws "$ROOT/recipes/campaigns/nightly-health.lua"
	"$FETTLE" nodes -w ws --json >nodes.json
	jq -e '[.nodes[] | select(.slow)] | length == 1' nodes.json
}

@test "scaling-ladder climbs to the rung that loses too much" {
	cd "$BATS_TEST_TMPDIR"
	"$FETTLE" run -q -s fake --fake "$TRUTH/scaling-ladder.json" -w ws "$ROOT/recipes/campaigns/scaling-ladder.lua"
	"$FETTLE" report -w ws --json >report.json
	jq -e '.rungs | map(.held) == [true, true, false]' report.json
	jq -e '[.rungs[].est] as $est | [0.95, 0.934, 0.704] | to_entries | all((.value - $est[.key] | fabs) < 0.015)' report.json
	"$FETTLE" report -w ws | grep -q 'the climb ends here'
}

@test "a rung that could not be measured says why, and what to do" {
	cd "$BATS_TEST_TMPDIR"
	run "$FETTLE" run -q -s fake -w ws "$ROOT/recipes/campaigns/scaling-ladder.lua"
	echo "$output"
	[[ $output == *'Rung 2, 1 x 8 ranks: rung 2 could not be measured, so the climb ends: 1 node x 8 ranks asks for 8 ranks, and processes of 1 were seen: resources.launcher says what starts them. (Scheduler fake makes up as many ranks as its truth says.)'* ]]
}
