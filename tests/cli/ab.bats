#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle ab on this machine, with a workload of planted truth.

setup() {
	unset FETTLE_RECIPE_PATH FETTLE_SITE
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
	PLANTED=${FETTLE%/*}/tests/workloads/planted
	OPTIONS=(--mode quick --warmup-trials 0 --seed 1 --quiet)
	PLANT=(--metrics-file --metric throughput_samples_per_s --stat median --steps 15 --warmup-steps 2)
	cd "$BATS_TEST_TMPDIR" || return 1
}

# ab ARGS...: runs it, and shows what it said.
ab() {
	run "$FETTLE" ab "${OPTIONS[@]}" "$@"
	echo "$output"
}

@test "ab: a variable that makes it faster is accepted, exit 0, and stored as a bundle" {
	ab "${PLANT[@]}" --guard loss=1 --env PLANT_SPEED=fast -- "$PLANTED" --fixed
	[ "$status" -eq 0 ]
	[[ ${lines[-1]} == 'verdict: accepted: B is better than A (PLANT_SPEED=fast): throughput_samples_per_s +'*' pairs.' ]]
	run "$FETTLE" report
	[[ $output == *'a bundle, credited as a whole: PLANT_SPEED=fast'* ]]
	[ "$("$FETTLE" report --json | jq -c '.hypotheses[0].bundle')" = '{"env":{"PLANT_SPEED":"fast"},"command":[]}' ]
	run "$FETTLE" status
	[[ $output == *done* ]]
}

@test "ab: two commands, and the slower one is rejected, exit 1" {
	ab "${PLANT[@]}" -- "$PLANTED" --fixed --- "$PLANTED" --fixed --slow
	[ "$status" -eq 1 ]
	[[ ${lines[-1]} == 'verdict: rejected: worse: B is worse than A: '* ]]
}

@test "ab: a baseline's and a candidate's file" {
	printf "PLANT_SPEED=slow\nEXTRA='a b'\n" >a.env
	printf "# found elsewhere\nexport PLANT_SPEED=\"fast\"\n" >b.env
	ab "${PLANT[@]}" --baseline a.env --candidate b.env -- "$PLANTED" --fixed
	[ "$status" -eq 0 ]
	[[ $output == *'credited as a whole: without EXTRA, PLANT_SPEED=fast'* ]]
}

@test "ab: the wall time of any command, without a word from it" {
	ab -- sleep 0.1 --- sleep 0.2
	[ "$status" -eq 1 ]
	[[ ${lines[-1]} == *'trial_wall_s -'* ]]
}

@test "ab: --json ends with the verdict" {
	run "$FETTLE" ab "${OPTIONS[@]:0:6}" --json -- sleep 0.1 --- sleep 0.2
	[ "$status" -eq 1 ]
	[ "$(jq -r '.kind, .outcome, .metric' <<<"${lines[-1]}" | paste -sd' ')" = 'verdict rejected: worse trial_wall_s' ]
}

@test "ab: what cannot be compared is said at once, exit 4" {
	ab --env A=1 -- false
	[ "$status" -eq 4 ]
	[[ ${lines[-1]} == *'invalid: nothing can be said about B (A=1); the baseline measured nothing: exited with 1'* ]]
	ab --env A=1 --guard loss=1 -- sleep 0.05
	[ "$status" -eq 4 ]
	[[ ${lines[-1]} == *'guard loss (last): no trial gives this metric'* ]]
}

@test "ab: a budget that is used up is exit 3, and resume goes on to the verdict" {
	ab --minutes 0.0001 -- sleep 0.1 --- sleep 0.2
	[ "$status" -eq 3 ]
	run "$FETTLE" resume --minutes 5 --quiet
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *'ab A -> B'*'rejected: worse'* ]]
	[[ ${lines[-1]} == 'verdict: rejected: worse: B is worse than A: '* ]]
	run "$FETTLE" resume --json
	[ "$status" -eq 1 ]
	[ "$(jq -r .outcome <<<"${lines[-1]}")" = 'rejected: worse' ]
}

@test "ab: no text is read by a shell or by Lua" {
	cat >show <<-'END'
		#!/bin/sh
		printf '%s\n' "$1" "$ODD" >>"$OUT"
	END
	chmod +x show
	odd=$'$(touch pwned) `touch pwned` "]]" \\ ; & \t|'
	OUT=$PWD/out ab --env "ODD=$odd" --env OUT="$PWD/out" -- ./show "$odd"
	[ ! -e pwned ]
	grep -qxF "$odd" out
	[ "$(sort -u out | grep -cF "$odd")" -eq 1 ]
}

@test "ab: usage" {
	ab -- sleep 0.1
	[ "$status" -eq 2 ]
	[[ $output == *'A and B are the same'* ]]
	OMP_NUM_THREADS=3 ab --env OMP_NUM_THREADS=3 -- sleep 0.1
	[ "$status" -eq 2 ]
	[[ $output == *'A and B are the same, A has these variables already'* ]]
	ab --unset OMP_NUM_THREADS -- sleep 0.1
	[ "$status" -eq 2 ]
	ab -- sleep 0.1 --- sleep 0.1
	[ "$status" -eq 2 ]
	[[ $output == *'A and B are the same command with the same variables'* ]]
	ab --env A=1 sleep 0.1
	[ "$status" -eq 2 ]
	[[ $output == *'the command stands after --'* ]]
	ab --env A=1
	[ "$status" -eq 2 ]
	ab --env A=1 -- ./no-such
	[ "$status" -eq 2 ]
	[[ $output == *'command not found'* ]]
	ab -- sleep 1 --- no-such-command
	[ "$status" -eq 2 ]
	ab --env A=1 --metric nonsense -- sleep 1
	[ "$status" -eq 2 ]
	[[ $output == *'there is no metric "nonsense"'* ]]
	ab -- a --- b --- c
	[ "$status" -eq 2 ]
	printf 'A=$HOME\n' >x.env
	ab --candidate x.env -- sleep 1
	[ "$status" -eq 2 ]
	[[ $output == *'x.env:1: nothing is expanded here'* ]]
	[ ! -e "$FETTLE_WORKSPACE" ]
}

@test "ab: --print writes a recipe that run takes" {
	"$FETTLE" ab "${OPTIONS[@]:0:6}" --print -- sleep 0.1 --- sleep 0.3 >c.lua
	run "$FETTLE" check c.lua
	echo "$output"
	[ "$status" -eq 0 ]
	[ ! -e "$FETTLE_WORKSPACE" ]
}

@test "objectives: two of them give a table, and a sample its cost" {
	cat >o.lua <<-END
		return { name = "o", objective = "throughput_samples_per_s", second_objective = "loss",
			workload = { command = { "$PLANTED", "--fixed" }, metrics = { file = true }, window = { warmup_steps = 2, steps = 15 } },
			resources = { gpus_per_node = 4 },
			knobs = {
				{ name = "f", arg = "--fast", flag = true, class = "neutral", default = false, values = { true } },
				{ name = "l", arg = "--loss-bias", flag = true, class = "numerics", default = false, values = { true } },
			},
			mode = "quick", rounds = 1, warmup_trials = 0, blocks = { aa = 2, final = 2, soak = 0 } }
	END
	"$FETTLE" run -q o.lua
	"$FETTLE" report --json >r.json
	jq -c '.tradeoffs[], .unit_costs[]' r.json
	# l brings as much as f and costs loss: only f is not beaten
	[ "$(jq -r '[.tradeoffs[] | select(.arm == "l=true") | .second_objective.est < -0.05] | all' r.json)" = true ]
	[ "$(jq '.tradeoffs | length' r.json)" -eq 2 ]
	[ "$(jq '[.unit_costs[] | (.gpu_hours / .node_hours - 4 | fabs) < 1e-6 and (.node_hours * .per_s * 3600 - 1 | fabs) < 1e-6] | all' r.json)" = true ]
	"$FETTLE" report | grep -q '^## Two objectives'
	"$FETTLE" report | grep -q '^## Cost of a sample'
}

@test "ab: no option of what is compared is dropped in silence, with the default metric either" {
	run "$FETTLE" ab --env X=1 --print --stat p95 -- true
	[ "$status" -eq 0 ]
	[ "$(grep -c objective <<<"$output")" -eq 1 ]
	[[ $output == *'metric = "trial_wall_s"'*'stat = "p95"'* ]]
	for wrong in --stat=x --better=x; do
		ab -s fake --env X=1 "$wrong" -- true
		[ "$status" -eq 2 ]
		[[ $output == *"objective.${wrong:2:3}"*'"x"'* ]]
	done
	[ ! -e "$FETTLE_WORKSPACE" ]
}
