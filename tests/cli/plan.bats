#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What a plan says of noise, cost and effect, and which campaigns it refuses.

setup() {
	unset FETTLE_RECIPE_PATH FETTLE_SITE
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
	cd "$BATS_TEST_TMPDIR" || return 1
}

# recipe FIELDS
recipe() {
	cat >c.lua <<-END
		return { name = "c", objective = "throughput_samples_per_s",
			workload = { command = { "true" }, metrics = { file = true }, window = { warmup_steps = 1, steps = 3 } },
			knobs = { { name = "A", env = "A", class = "neutral", values = { 1 } } },
			mode = "quick", rounds = 1, warmup_trials = 0, $1 }
	END
}

@test "plan: a stated gain is refused only at a noise that is known" {
	recipe 'min_effect = 0.01'
	run "$FETTLE" plan c.lua
	[ "$status" -eq 0 ]
	[[ $output == *'2 % (assumed'* ]]
	run "$FETTLE" plan --noise 5 c.lua
	[ "$status" -eq 2 ]
	[[ ${lines[-1]} == *'a gain of 1 % is sought, and the smallest that it can show is'*'--anyway insists' ]]
	run "$FETTLE" plan --noise 5 --anyway c.lua
	[ "$status" -eq 0 ]
	run "$FETTLE" plan --noise 0.1 c.lua
	[ "$status" -eq 0 ]
	recipe ''
	run "$FETTLE" plan --noise 5 c.lua
	[ "$status" -eq 0 ]
	run "$FETTLE" plan --noise 5 --gain 1 c.lua
	[ "$status" -eq 2 ]
}

@test "plan and check: a canary has so many runs a night and no others" {
	cat >c.lua <<-END
		return { name = "c", objective = "throughput_samples_per_s",
			workload = { command = { "true" }, metrics = { file = true }, window = { warmup_steps = 1, steps = 3 } },
			canary = { blocks = 3, reference = { env = { A = 1 } } }, schedule = "week", mode = "quick", warmup_trials = 1 }
	END
	run "$FETTLE" plan c.lua
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = 'campaign c, mode quick, a canary: 3 blocks a week, reference with A=1' ]
	[[ $output == *'each night    6 runs'*'warm-up       3 runs'*'together      9 runs at most'* ]]
	[[ $output != *baseline* ]]
	"$FETTLE" plan --json c.lua | jq -e '.runs_a_night == 6 and .runs_max == 9 and .runs_baseline == 0'
	run "$FETTLE" check c.lua
	[ "$output" = "c.lua: fit to run: campaign c, a canary of 3 blocks a week, mode quick" ]
}

@test "plan: noise and time of a run come from the campaign that measured them" {
	recipe 'min_effect = 0.01'
	echo '{"effects": {}, "sd_run": 0.05, "fixed": true}' >truth.json
	"$FETTLE" run -q -s fake --fake truth.json c.lua
	run "$FETTLE" plan --json --anyway c.lua
	[ "$(jq -r '.noise_from, .noise_measured.campaign, .answerable' <<<"$output" | paste -sd' ')" = 'measured 1 false' ]
	[ "$(jq '.noise > 0.01 and .noise < 0.2 and .node_hours_max > 0' <<<"$output")" = true ]
	run "$FETTLE" run -q -s fake --fake truth.json c.lua
	[ "$status" -eq 2 ]
	[[ $output == *'cannot answer its question'* ]]
	run "$FETTLE" run -q -s fake --fake truth.json --anyway c.lua
	[ "$status" -eq 0 ]
}

@test "plan: a campaign is planned again with what it measured, from the stage that it is in" {
	recipe 'knobs = { { name = "A", env = "A", class = "neutral", values = { 1, 2, 3 } } }, budget = { trials = 16 }'
	echo '{"effects": {"A=1": 0.3}, "sd_run": 0.03, "fixed": true}' >truth.json
	run "$FETTLE" run -q -s fake --fake truth.json c.lua
	[ "$status" -eq 3 ]
	run "$FETTLE" plan 1
	[ "$status" -eq 0 ]
	[[ $output == *'measured by campaign 1 of this workspace: residuals of A/A (3 degrees of freedom) and screen (3)'* ]]
	[[ ${lines[-1]} == 'campaign 1 is stopped: '*' of these runs are done' ]]
	run "$FETTLE" plan c --json
	[ "$(jq -c .noise_measured <<<"$output")" = '{"campaign":1,"df_aa":3,"df_screen":3,"df_validation":0}' ]
	run "$FETTLE" plan 7
	[ "$status" -eq 2 ]
	[[ $output == *'7 is neither a recipe nor a campaign'*'holds no campaign 7'* ]]
	run "$FETTLE" plan -w "$BATS_TEST_TMPDIR/none" 1
	[ "$status" -eq 2 ]
}

@test "plan: a comparison without an A/A stage is a source of noise, too" {
	recipe 'blocks = { aa = 0, final = 0, soak = 0 }'
	echo '{"effects": {}, "sd_run": 0.03, "fixed": true}' >truth.json
	"$FETTLE" run -q -s fake --fake truth.json c.lua
	run "$FETTLE" plan c.lua
	[[ $output == *'residuals of validation ('*' degrees of freedom)'* ]]
}

@test "plan: a budget that ends before the first look" {
	recipe 'min_effect = 0.2, budget = { trials = 9 }'
	run "$FETTLE" plan c.lua
	[ "$status" -eq 2 ]
	[[ ${lines[-1]} == *'the budget ends before the first look'* ]]
	recipe 'budget = { trials = 9 }'
	run "$FETTLE" plan c.lua
	[ "$status" -eq 0 ]
}

@test "plan: not even a gain of half" {
	recipe ''
	run "$FETTLE" plan --noise 60 c.lua
	[ "$status" -eq 2 ]
	[[ ${lines[-1]} == *'a gain of 50 % is sought'* ]]
}

@test "plan: GPU-hours where GPUs are asked for" {
	recipe 'resources = { nodes = 2, gpus_per_node = 8 }'
	run "$FETTLE" plan --json --trial 3600 c.lua
	[ "$(jq '.node_hours_max == 2 * .runs_max and .gpu_hours_max == 16 * .runs_max' <<<"$output")" = true ]
}

@test "objectives: what contradicts itself is refused with file, line and field" {
	recipe 'target = 1500, constraints = { throughput_samples_per_s = { at_most = 1000 } }'
	run "$FETTLE" check c.lua
	[ "$status" -eq 2 ]
	[[ $output == *'c.lua:4: constraints.throughput_samples_per_s: contradicts the target'* ]]
	recipe 'constraints = { mfu_pct = { at_least = 140 } }'
	run "$FETTLE" check c.lua
	[ "$status" -eq 2 ]
	[[ $output == *'no possible value keeps it: mfu_pct lies from 0 to 100'* ]]
	recipe 'constraints = { mfu_pct = {} }'
	run "$FETTLE" check c.lua
	[[ $output == *'a constraint needs at_most or at_least'* ]]
	recipe 'blocks = { aa = 1 }'
	run "$FETTLE" check c.lua
	[ "$status" -eq 2 ]
	[[ $output == *'1 block tells nothing about noise'* ]]
	recipe 'second_objective = "throughput_samples_per_s"'
	run "$FETTLE" check c.lua
	[[ $output == *'this is the objective itself'* ]]
}
