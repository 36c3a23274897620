#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A budget that runs out does not lose the answer: what the fix needs is kept, and what was left out for it is said.

bats_require_minimum_version 1.5.0

setup() {
	ROOT=$BATS_TEST_DIRNAME/../..
	FETTLE=${FETTLE_BUILD:-$ROOT/build/release}/fettle
	cd "$BATS_TEST_TMPDIR" || return
	sed 's/^	mode = /	budget = { trials = 60 },&/' "$ROOT/tests/fixtures/recipes/fake.lua" >sixty.lua
	sed 's/^	mode = /	budget = { trials = 20 },&/' "$ROOT/tests/fixtures/recipes/fake.lua" >twenty.lua
	echo '{"effects": {"A=1": 0.3, "B=1": 0.1}, "sd_run": 0.01, "fixed": true}' >truth.json
}

@test "budget: once a change is accepted the search stops in time for its fix" {
	run -0 "$FETTLE" plan sixty.lua
	[[ $output == *"budget       60 runs; once a change is accepted 22 of them are kept for its final stage"* ]]
	[[ $output != *"before a fix could be proved"* ]]
	run -0 "$FETTLE" run -q -w ws --fake truth.json sixty.lua
	echo "$output"
	[[ $output == *"Budget: stopped searching to keep room for the final stage: 3 of 4 candidates without a verdict."* ]]
	[[ $output == *"Fix: A=1: validated"* ]]
	run -0 "$FETTLE" recommend -w ws --as env
	[[ $output == *"A=1"* ]]
	"$FETTLE" report -w ws --json >report.json
	jq -e '.campaign.state == "done" and .cost.trials_all <= 60' report.json
	jq -e '[.events[] | select(.kind == "budget")] | length == 1' report.json
	run -0 "$FETTLE" report -w ws --lang zh
	[[ $output == *"预算：为给终验留出预算而停止搜索：4 个候选中有 3 个没有判定"* ]]
}

@test "budget: one that ends before a fix could be proved is said by plan, and a resume goes on" {
	run -0 "$FETTLE" plan --anyway twenty.lua
	[[ $output == *"the budget ends before a fix could be proved: that takes 54 runs or more"* ]]
	run "$FETTLE" run -q -w ws --anyway --fake truth.json twenty.lua
	echo "$output"
	[[ $output == *"the budget of trials is used up; \`fettle resume 1\` goes on"* ]]
	for _ in 1 2 3 4 5; do
		run "$FETTLE" resume -q -w ws --minutes 10 --fake truth.json
		[ "$status" -ne 0 ] || break
	done
	echo "$output"
	[[ $output == *"Fix: A=1: validated"* ]]
}

@test "budget: resume --minutes is held to the bounds of a recipe's" {
	for minutes in 0 -1 nan inf 1e308 10000001; do
		run "$FETTLE" resume -w ws "--minutes=$minutes"
		[ "$status" -eq 2 ]
		[[ $output == *"above 0 and up to 10000000, got $minutes"* ]]
	done
}
