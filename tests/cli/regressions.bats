#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle regressions on the sample of nights (tests/unit/nights_sample.h). FETTLE_UPDATE=1 writes the golden files.
bats_require_minimum_version 1.5.0

setup() {
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	GOLDEN=$TOP/tests/golden/nights
	cd "$BATS_TEST_TMPDIR" || return 1
	export FETTLE_WORKSPACE=$PWD/team
	"$FETTLE_BUILD/tests/bench/nights" "$FETTLE_WORKSPACE"
}

# $1: golden file; $2: what was printed. What to type names this place.
golden() {
	sed -i "s|$FETTLE_WORKSPACE|/team|; s|$FETTLE |fettle |" "$2"
	[ -z "${FETTLE_UPDATE:-}" ] || cp "$2" "$GOLDEN/$1"
	diff "$GOLDEN/$1" "$2"
}

@test "regressions: the list has exit status 1 while one is confirmed, worse and open" {
	run -1 --separate-stderr "$FETTLE" regressions
	echo "$output" >regressions.txt
	golden regressions.txt regressions.txt
	run -1 "$FETTLE" regressions --all --json
	echo "$output" >regressions.json
	golden regressions.json regressions.json
	[ "$(jq .status regressions.json)" -eq 1 ]
	"$FETTLE" regressions ack 1 --note 'asked the vendor'
	run -0 "$FETTLE" regressions
	[[ $output == *'acknowledged  2026-11-10  worse '*"$(id -un): asked the vendor"* ]]
}

@test "regressions: all about one" {
	"$FETTLE" regressions show 1 >one.txt
	golden one.txt one.txt
	"$FETTLE" regressions 1 | sed "s|$FETTLE_WORKSPACE|/team|; s|$FETTLE |fettle |" | diff - one.txt
	"$FETTLE" regressions show 1 --json >one.json
	golden one.json one.json
	for key in $(jq -r '[paths | map(select(type == "string")) | last] | unique | .[]' one.json); do
		grep -q "\`$key\`" "$TOP/orchestrator/report/HISTORY.md" || { echo "not documented: $key"; return 1; }
	done
}

@test "regressions: what people say of one is kept, and must be said in order" {
	"$FETTLE" regressions fix 1 --note 'driver is back' --by 'ana & bo'
	"$FETTLE" regressions show 1 --json >one.json
	[ "$(jq -r '.state + "/" + .who + "/" + .note' one.json)" = 'fixed/ana & bo/driver is back' ]
	run -4 "$FETTLE" regressions fix 1 --note again
	[[ $output == *'is fixed already by ana & bo: driver is back'* ]]
	run -4 "$FETTLE" regressions accept 1 --note x
	[[ $output == *'reopen 1 --note WHY'* ]]
	"$FETTLE" regressions reopen 1 --note 'it is not'
	run -1 "$FETTLE" regressions
	"$FETTLE" regressions accept 1 --note 'the price of it' --json | jq -e '.state == "accepted"'
	run -0 "$FETTLE" regressions
}

# A canary that ran a night on scheduler fake, in whose series tracking found a regression with three
# keys of the environment; of these nccl costs 6 %.
bisection() {
	cat >c.lua <<-END
		return {
			name = "loader",
			workload = { command = { "true", "it's" }, workdir = "/", metrics = { file = true }, $CONTAINER
				window = { warmup_steps = 5, steps = 20 }, env = { OMP_NUM_THREADS = "4" } },
			$RESOURCES
			objective = "throughput_samples_per_s",
			canary = { blocks = 2 },
			fingerprint = {
				nccl = { command = { "true" }, set = { env = { NCCL_HOME = "/sw/nccl/{value}" } } },
				omp = { env = "OMP_PROC_BIND" },
			},
		}
	END
	echo '{"effects":{"NCCL_HOME=/sw/nccl/2.27.3":0.06},"sd_run":0.005}' >truth.json
	export FETTLE_WORKSPACE=$PWD/bisection
	"$FETTLE" run c.lua -s fake -q --fake truth.json
	sqlite3 "$FETTLE_WORKSPACE/fettle.db" "
		INSERT INTO regression(id, kind, level, state, night, found_night, found_us, state_us)
		VALUES (1, 'worse', 'confirmed', 'open', '2026-11-10', '2026-11-11', 0, 0);
		INSERT INTO change(series, regression, night, first_night, last_night, direction, level, est, found_us)
		SELECT id, 1, '2026-11-10', '2026-11-10', '2026-11-10', 'worse', 'confirmed', -0.06, 0 FROM series
		WHERE role = 'current' AND metric = 'throughput_samples_per_s';
		INSERT INTO cause(regression, rank, kind, key, was, \"is\", score, proved, why) VALUES
		$CAUSE (1, 1, 'environment', 'omp', 'close', 'spread', 0.5, 0, 'changed then'),
		(1, 2, 'environment', 'nccl', '2.27.3', '2.28.9', 0.4, 0, 'changed then'),
		(1, 3, 'environment', 'nvidia_driver', '550', '570', 0.3, 0, 'changed then');"
}

@test "regressions bisect: the plan, and the command that asks the same" {
	bisection
	"$FETTLE" regressions bisect 1 >plan.txt
	cat plan.txt
	grep -q '^  3\. nvidia_driver 550 -> 570$' plan.txt
	grep -q 'cannot be set: the recipe' plan.txt
	[ "$(grep -c 'at most [0-9]* blocks, with warm-up [0-9]* runs, [0-9.]* node-' plan.txt)" -eq 2 ]
	grep -q -- '--env OMP_PROC_BIND=close --base-env OMP_NUM_THREADS=4 --base-env OMP_PROC_BIND=spread ' plan.txt
	command=$(grep -- '--env NCCL_HOME=/sw/nccl/2.27.3 --base-env OMP_NUM_THREADS=4' plan.txt)
	sh -c "${command/ ab / ab --fake truth.json -q }" | tail -1 >verdict.txt
	grep -q '^verdict: accepted: B is better than A (NCCL_HOME=/sw/nccl/2.27.3)' verdict.txt
	"$FETTLE" regressions bisect 1 --json >plan.json
	[ "$(jq -r '[.keys[] | .key + ":" + (.cannot == null | tostring)] | join(" ")' plan.json)" = \
		'omp:true nccl:true nvidia_driver:false' ]
	for key in $(jq -r '[paths | map(select(type == "string")) | last] | unique | .[]' plan.json); do
		grep -q "\`$key\`" "$TOP/orchestrator/report/HISTORY.md" || { echo "not documented: $key"; return 1; }
	done
}

@test "regressions bisect: job options and a container go into its own recipe, which fettle ab has no words for" {
	RESOURCES='resources = { comment = "night", mem_gib_per_cpu = 2, nice = 5 },'
	CAUSE="(1, 4, 'environment', 'container', 'a', 'b', 0.2, 0, 'changed then')," CONTAINER='container = { image = "/i.sif", runtime = "apptainer", mounts = { "/d:/d" }, args = { "--nv" } },'
	bisection
	"$FETTLE" regressions bisect 1 >plan.txt
	cat plan.txt
	grep -q 'cannot be set: another image is none of what' plan.txt
	[ "$(grep -c 'by --run: its container or its job options' plan.txt)" -eq 2 ]
	[ "$("$FETTLE" regressions bisect 1 --json | jq '[.keys[] | select(.cannot == null) | .command] | unique | length')" = 1 ]
	run -0 "$FETTLE" regressions bisect 1 --run --fake truth.json -q
	[[ ${lines[-1]} == 'nccl 2.27.3 -> 2.28.9: measured alone, as it was against as it is: it is the cause, +'* ]]
	sqlite3 "$FETTLE_WORKSPACE/fettle.db" \
		"SELECT text FROM recipe_source WHERE campaign = (SELECT max(id) FROM campaign)" | tr '\n' ' ' >recipe.txt
	cat recipe.txt
	grep -q 'comment = "night", *nice\|nice = 5, *comment = "night"' recipe.txt
	grep -q 'mem_gib_per_cpu = 2,' recipe.txt
	grep -q 'image = "/i.sif", runtime = "apptainer", mounts = { "/d:/d" }, args = { "--nv" }, }' recipe.txt
}

@test "regressions bisect --run: the answer is kept as the cause's, once" {
	bisection
	run -0 "$FETTLE" regressions bisect 1 --run --fake truth.json -q
	[[ $output == *'omp close -> spread: measured alone, as it was against as it is: it is not the cause'* ]]
	[[ ${lines[-1]} == 'nccl 2.27.3 -> 2.28.9: measured alone, as it was against as it is: it is the cause, +'* ]]
	"$FETTLE" regressions show 1 --json >one.json
	[ "$(jq -r '[.causes[] | .key + ":" + (.proved | tostring)] | join(" ")' one.json)" = \
		'nccl:true nvidia_driver:false omp:false' ]
	[[ $(jq -r '.causes[0].why' one.json) == *'; before that: changed then' ]]
	# as of a re-run: nights that rank the causes anew keep it
	[ "$(jq -c '[.causes[] | [.key, .score]]' one.json)" = '[["nccl",1.4],["nvidia_driver",0.3],["omp",0]]' ]
	# what has its verdict is not run again
	before=$("$FETTLE" status --json | jq length)
	run -0 "$FETTLE" regressions bisect 1 --run -q --json
	[ "$(grep -c '"answer":"proved"' <<<"$output")" -eq 1 ]
	[ "$("$FETTLE" status --json | jq length)" -eq "$before" ]
	"$FETTLE" regressions show 1 --json | diff - one.json
}

@test "regressions bisect: what cannot be measured again says so" {
	run -4 "$FETTLE" regressions bisect 1
	[[ $output == *'series that fettle does not measure itself'* ]]
	run -2 "$FETTLE" regressions show 1 --run
}

@test "regressions: usage" {
	run -2 "$FETTLE" regressions akc 1 --note x
	[[ $output == *'did you mean ack?'* ]]
	run -2 "$FETTLE" regressions ack 1
	[[ $output == *'--note TEXT'* ]]
	run -2 "$FETTLE" regressions ack 1 --note ''
	run -2 "$FETTLE" regressions ack 1 --note "$(printf %1001s x)"
	[[ $output == *'at most 1000 bytes'* ]]
	run -2 "$FETTLE" regressions show
	run -2 "$FETTLE" regressions show one
	run -2 "$FETTLE" regressions show 1 --note x
	run -2 "$FETTLE" regressions show 1 2
	run -4 "$FETTLE" regressions show 99
	[[ $output == *'there is no regression 99'* ]]
}

@test "regressions: escapes in names and notes do not reach the terminal" {
	"$FETTLE" regressions ack 2 --note $'\033]0;x\007 <b>' --by $'\033[2J'
	"$FETTLE" regressions --all >out || true
	"$FETTLE" regressions show 2 >>out
	"$FETTLE" history >>out
	[ "$(LC_ALL=C tr -d '\012\040-\176' <out | wc -c)" -eq 0 ]
}
