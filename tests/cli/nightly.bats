#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle nightly: what is due, once a night, whatever happens in between. Results are made up (scheduler fake), or
# those of a workload of sleeps where something is to be killed.
bats_require_minimum_version 1.5.0

setup() {
	FETTLE=${FETTLE:?set it to the fettle that is tested}
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	PATH=${FETTLE%/*}/tests/workloads:$PATH
	unset FETTLE_WORKSPACE FETTLE_SITE FETTLE_RECIPE_PATH
	cd "$BATS_TEST_TMPDIR" || return 1
	export TZ=UTC
	mkdir night
	echo '{"sd_run": 0.005}' >truth.json
}

# A canary called $1 on scheduler fake; further fields in $2.
canary() {
	sed "s/name = \"canary\",/name = \"$1\", ${2:-}/" "$TOP/tests/fixtures/recipes/canary.lua" >"night/$1.lua"
}

# A sweep of made-up results; further fields in $1.
sweep() {
	sed "s/^return {/return { schedule = \"week\", ${1:-}/; /mode = \"standard\"/d" "$TOP/tests/fixtures/recipes/fake.lua" >night/sweep.lua
}

# A canary of three blocks whose trials wait for the file gate, and say in the file `waits` that they do.
gated_canary() {
	cat >gated.sh <<-'END'
		#!/bin/sh
		[ -e gate ] || echo $$ >>waits
		until [ -e gate ]; do sleep 0.02; done
		exec planted --fixed --sleep-ms 5
	END
	chmod +x gated.sh
	cat >night/gated.lua <<-END
		return {
			name = "gated",
			workload = {
				command = { "$PWD/gated.sh" },
				workdir = "$PWD",
				window = { warmup_steps = 1, steps = 10 },
				metrics = { file = true },
				limits = { trial_s = 300 },
			},
			objective = { metric = "step_time_ms", stat = "median" },
			canary = { blocks = 3 },
			warmup_trials = 0,
		}
	END
}

nightly() {
	"$FETTLE" nightly night -w ws --fake truth.json "$@"
}

# The same in the background, as $pid.
start_night() {
	"$FETTLE" nightly night -w ws --fake truth.json "$@" >out 2>&1 3>&- &
	pid=$!
}

sql() { sqlite3 -cmd '.timeout 20000' ws/fettle.db "$1"; }

submitted() { [ "$(sql "SELECT count(*) FROM attempt WHERE state = 'submitted'")" = 1 ]; }

# wait_for COMMAND...: until it succeeds, for two minutes
wait_for() {
	local i
	for ((i = 0; i < 2400; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.05
	done
	echo "in vain: $*"
	return 1
}

# What was measured: nights, blocks and slots, each once.
measured() {
	sql "SELECT c.night, c.stage, b.idx, t.slot, count(*) FROM canary c JOIN block b ON b.stage = c.stage JOIN attempt a ON a.block = b.id
		AND a.state = 'valid' JOIN trial t ON t.attempt = a.id GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
}

@test "a dry run says what would run, in which order and why, and leaves nothing behind" {
	canary one
	canary weekly 'schedule = "week",'
	sweep
	cp "$TOP/tests/fixtures/recipes/ten.lua" night/unscheduled.lua
	run -0 nightly --plan
	echo "$output"
	[ "$(sed -n '3,$p' <<<"$output" | awk '/^ +[0-9]+\./ { print $2, $3 }' | paste -sd,)" = 'canary one,canary weekly,sweep fake' ]
	[[ $output == *'risk 1.00  never looked at'* ]]
	[[ $output == *'ten says no `schedule`: left alone'* ]]
	[ ! -e ws ]
	nightly --plan --json | jq -e '.plan and (.items | length == 3) and ([.items[] | select(.due == "run")] | length == 3)'
}

@test "once a night; a week has seven of them; nights that were missed are one" {
	canary one
	canary weekly 'schedule = "week",'
	nightly --night 2026-11-29
	nightly --night 2026-11-29 >again
	grep -q 'canary  one .*ended: throughput_samples_per_s [0-9.]* samples/s, .* against the same, 2 blocks' again
	[ "$(sql "SELECT group_concat(name || night, ' ') FROM canary JOIN stage s ON s.id = canary.stage JOIN campaign c ON c.id = s.campaign")" \
		= 'one2026-11-29 weekly2026-11-29' ]
	nightly --night 2026-11-30 --plan >plan
	grep -q 'canary  weekly  *not due' plan
	grep -q '1\. canary  one  *runs .* 1 night since the last look' plan
	nightly --night 2026-12-07
	[ "$(sql "SELECT count(*) FROM canary WHERE night = '2026-12-07'")" = 2 ]
	# the clock is set back: that night has its look; one that was never there is due, and said to be odd
	nightly --night 2026-11-29
	[ "$(sql 'SELECT count(*) FROM canary')" = 4 ]
	nightly --night 2026-12-01 --plan | grep -q 'was the clock set back?'
}

@test "a recipe that cannot be read is named, the others run, and the status is 4" {
	canary one
	echo 'return { name = "bad", objectiv = "loss" }' >night/bad.lua
	echo 'return {' >night/torn.lua
	canary two 'name = "one",'
	run -4 nightly --night 2026-11-29
	echo "$output"
	[[ $output == *'canary  one '*'ended'* ]]
	[[ $output == *'bad.lua:1: objectiv: there is no such field'*'did you mean "objective"'* ]]
	[[ $output == *'torn.lua'* ]]
	[[ $output == *'two.lua: its name, one, is that of one.lua, too'* ]]
	[ "$(nightly --night 2026-11-29 --json | jq -c '[(.bad_recipes | length), .status]')" = '[3,4]' ]
}

@test "a canary that measures nothing needs somebody" {
	canary one
	sed -i 's/command = { "true" }/command = { "false" }/; /scheduler = /d' night/one.lua
	run -4 nightly
	echo "$output"
	[[ $output == *'canary  one '*'STOPPED: no trial has throughput_samples_per_s: no point (campaign 1)'* ]]
	[[ $output == *"next: "*"fettle status 1 -w "* ]]
	[[ $output == *'no canary measured anything: no open regression'* && $output != *'nothing moved'* ]]
}

@test "what an imported history had been through before is in the list, and not on the page of every night" {
	{
		echo time,latency
		for i in {0..59}; do echo "$(date -d "2026-08-01 +$i days" +%F),$((i > 29 ? 150 + i % 2 : 100 + i % 2))"; done
	} >runs.csv
	"$FETTLE" history import -w ws --workload old --metric latency:down runs.csv
	"$FETTLE" regressions -w ws | grep -q 'latency .*of old'
	canary one
	[[ $(nightly --night 2026-11-21) == *'nothing moved'* ]]
	# what looks changed since is a suspicion, of which no re-run is promised
	{
		echo time,latency
		for i in {1..21}; do printf '2026-11-%02d,%d\n' "$i" $((i > 20 ? 150 : 100 + i % 2)); done
	} >new.csv
	"$FETTLE" history import -w ws --workload new --metric latency:down new.csv
	nightly --night 2026-11-21 >page
	cat page
	grep -q '^suspicions of what fettle does not measure itself' page
	run ! grep -q 're-run settles' page
}

@test "what people and files call things does not act on the terminal that shows the page" {
	{
		echo time,latency
		for i in {1..20}; do printf '2026-10-%02d,%d\n' "$i" $((i > 12 ? 150 + i % 2 : 100 + i % 2)); done
	} >runs.csv
	"$FETTLE" history import -w ws --workload $'\033[2Jw\nx' --metric latency:down runs.csv
	"$FETTLE" regressions -w ws ack 1 --note $'\033]0;x\007\nall is well' --by $'\033[2J'
	canary one
	nightly --night 2026-10-21 >out
	grep -q 'x1b\[2Jw x, latency +' out
	grep -q 'acknowledged by .*: .*all is well' out
	[ "$(LC_ALL=C tr -d '\012\040-\176' <out | wc -c)" -eq 0 ]
}

@test "sweeps are strict unless they say otherwise; the page tells what they find and their false wins" {
	echo '{"sd_run": 0.004, "effects": {"A=1": 0.1}}' >truth.json
	sweep
	nightly --night 2026-11-29 >page
	cat page
	grep -q 'sweep   fake .*ended: A=1.*: validated, +' page
	grep -q 'to expect in a year: at most 0.52$' page # 52 of alpha 0.01
	[ "$(sql 'SELECT mode, alpha FROM campaign')" = 'strict|0.01' ]
	ls ws/reports/campaign-1.md
	sed -i 's/^return {/return { mode = "quick",/' night/sweep.lua
	nightly --night 2026-12-10 >page
	grep -q 'to expect in a year: at most 2.6$' page
	[ "$(sql 'SELECT mode FROM campaign WHERE id = 2')" = quick ]
	# its fix is watched, against the default
	grep -q 'fix     fake .*ended' page
	[ "$(sql "SELECT count(*) FROM canary WHERE night = '2026-12-10'")" = 1 ]
}

@test "an environment that changed: the fix is validated again, and a sweep that waits for that has its turn the same night" {
	echo '{"sd_run": 0.004, "effects": {"A=1": 0.1}, "environment": {"lib": "1"}}' >truth.json
	sweep 'mode = "quick",'
	sed -i 's/schedule = "week"/schedule = { after_change = true }/' night/sweep.lua
	canary one
	nightly --night 2026-11-29 | grep -q 'sweep   fake .*ended: A=1'
	nightly --night 2026-11-30 >page
	[ "$(grep -c 'sweep   fake\|environment changed' page)" = 0 ]
	sed -i 's/"lib": "1"/"lib": "2"/' truth.json
	nightly --night 2026-12-01 >page
	cat page
	grep -A 1 'fixes whose environment changed' page | grep -q 'fake: lib: 1 -> 2: ended: validated, holds'
	grep -q 'sweep   fake .*ended' page
	[ "$(sql "SELECT count(*) FROM canary WHERE purpose = 'revalidate'")" = 1 ]
	[ "$(sql "SELECT count(*) FROM campaign WHERE name = 'fake'")" = 2 ]
}

@test "a night that ends leaves the rest, says why, and the next one goes on with it" {
	sweep 'budget = { minutes = 600 },'
	run -3 nightly --night 2026-11-29 --node-hours 0.005
	echo "$output"
	[[ $output == *' of at most 0.005 node-h'* ]]
	[[ $output == *'left for the next night'*'sweep   fake '*'left: the night has spent what it may'* ]]
	[ "$(sql 'SELECT state FROM campaign')" = running ]
	trials=$(sql 'SELECT count(*) FROM trial')
	# the budget is the night's: no more of it by calling again, of whatever date it is
	run -3 nightly --night 2026-11-29 --node-hours 0.005
	[ "$(sql 'SELECT count(*) FROM trial')" = "$trials" ]
	run -3 nightly --node-hours 0.005
	nightly --night 2026-11-30 --plan | grep -q '1\. sweep .*begun and not ended'
	run -0 nightly --night 2026-11-30
	[ "$(sql 'SELECT count(*), state FROM campaign')" = '1|done' ]
	[ "$(sql 'SELECT count(*) FROM trial')" -gt "$trials" ]
	# it had its turn: the next is due in a week
	nightly --night 2026-12-06 --plan | grep -q 'sweep   fake  *not due'
}

@test "outside of its window a night does not begin; what cannot end in time does not either" {
	canary one
	from=$((($(date +%-H) + 3) % 24))
	window=$(printf '%02d:00-%02d:00 UTC' $from $(((from + 1) % 24)))
	run -3 nightly --window "$window"
	[[ $output == *"the window $window is closed and opens at "*"$(printf %02d:00 $from)"* ]]
	nightly --window "$window" --plan | grep -q "window $window"
	run -3 nightly --minutes 1
	echo "$output"
	[[ $output == *'canary  one '*'left: the next block may take '*' min and the night ends at '* ]]
	[ "$(sql 'SELECT count(*) FROM trial')" = 0 ]
	run -0 nightly
	[ "$(sql 'SELECT count(*) FROM canary')" = 1 ]
}

@test "a scheduler that never answers holds a night for 23 hours, and what it tells later counts" {
	canary one
	cc -shared -fPIC -o clock.so "$TOP/tests/faults/clockjump.c" -ldl
	jq '. + {silent_after: 1}' truth.json >silent.json
	echo 0 >offset
	CLOCK_OFFSET=$PWD/offset LD_PRELOAD=$PWD/clock.so "$FETTLE" nightly night -w ws --fake silent.json >out 2>&1 3>&- &
	pid=$!
	wait_for submitted
	echo 79200 >offset # 22 hours: it may yet speak
	sleep 0.2
	kill -0 $pid
	echo 82860 >offset
	rc=0
	wait $pid || rc=$?
	cat out
	[ "$rc" -eq 3 ]
	grep -qE 'canary  one .*left: the night ended at .* with 1 block in flight, of whose end the scheduler told nothing: the next night takes what it measured' out
	run -0 nightly --night "$(date -d tomorrow +%F)"
	[ "$(sql 'SELECT count(*) FROM attempt WHERE number > 1')" = 0 ]
}

@test "killed at any point, the same command measures nothing twice; a second one at a time says so" {
	gated_canary
	canary other
	start_night --night 2026-11-29
	wait_for test -e waits
	run -3 nightly --night 2026-11-29
	[[ $output == *"another night is under way in this workspace: night 2026-11-29 of night, process $pid on "* ]]
	kill -9 $pid
	wait $pid || true
	# its trial lives on and is adopted
	start_night --night 2026-11-29
	wait_for grep -q "process $pid " ws/nightly.lock
	touch gate
	wait_for test -e ws/blocks/2.1/done.json
	kill -9 $pid
	wait $pid || true
	run -0 nightly --night 2026-11-29
	echo "$output"
	[[ $output == *'canary  gated '*'ended: step_time_ms '* ]]
	measured >got
	cat got
	# three blocks of two, two of two
	[ "$(wc -l <got)" = 10 ]
	[ "$(grep -cv '|1$' got)" = 0 ]
	[ "$(sql 'SELECT count(*) FROM campaign')" = 2 ]
}

@test "TERM cancels what runs, exits with 3 and leaves a night that goes on" {
	gated_canary
	sweep
	start_night --night 2026-11-29
	wait_for test -e waits
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	cat out
	[ "$status" = 3 ]
	grep -q 'gated .*left: stopped by a signal' out
	grep -q 'sweep .*left: stopped by a signal' out
	touch gate
	run -0 nightly --night 2026-11-29
	[ "$(measured | wc -l)" = 6 ]
	[ "$(measured | grep -cv '|1$')" = 0 ]
}

@test "what was typed wrong is said" {
	canary one
	run -2 "$FETTLE" nightly
	[[ $output == *'which directory?'* ]]
	run -2 nightly --minutes 0
	run -2 nightly --night 2026-02-30
	[[ $output == *'--night wants a date like 2026-11-29, got 2026-02-30'* ]]
	run -2 nightly --window 22-06
	[[ $output == *'expected hours like'* ]]
	run -2 "$FETTLE" nightly nowhere -w ws
	[[ $output == *'nowhere: No such file or directory'* ]]
	mkdir empty
	run -2 "$FETTLE" nightly empty -w ws
	[[ $output == *'empty holds no recipe (*.lua)'* ]]
}

@test "the examples for systemd and cron are what their own tools take" {
	cp "$TOP"/recipes/nightly/fettle-nightly.* .
	export XDG_RUNTIME_DIR=$PWD
	run -0 systemd-analyze verify --user --man=no ./fettle-nightly.timer ./fettle-nightly.service
	[ -z "$output" ] || { echo "$output"; return 1; }
	sed -i 's/^KillMode=.*/KillMode=mix/' fettle-nightly.service # the tool does look
	run systemd-analyze verify --user --man=no ./fettle-nightly.service
	[ -n "$output" ]
	for f in crontab scrontab; do
		# Debian's cron tests with -n, cronie with -T
		crontab -n "$TOP/recipes/nightly/$f" || crontab -T "$TOP/recipes/nightly/$f"
	done
	# what they call is a command line of this program: with a directory that is there it is taken
	mkdir -p home/fettle/nightly
	canary one && mv night/one.lua home/fettle/nightly/
	ln -s "$FETTLE" fettle
	n=0
	while read -r line; do
		HOME=$PWD/home PATH=$PWD:$PATH sh -c "${line//%h/$PWD/home} --plan" >out
		grep -q 'canary  one ' out
		n=$((n + 1))
	done < <(grep -ohE 'fettle nightly (%h|\$HOME)/.*' "$TOP"/recipes/nightly/* | sed 's/ 2>.*//')
	[ $n = 4 ]
}

@test "LONG: thirty nights: a slow-down that nothing can set back is measured again on another night, and told until it is fixed" {
	[ -n "${LONG:-}" ] || return 0
	local d confirmed=
	canary one 'min_effect = 0.03,'
	for d in $(seq 1 30); do
		[ "$d" -lt 18 ] || echo '{"sd_run": 0.005, "base": 90}' >truth.json
		status=0
		nightly --night "2026-11-$(printf %02d "$d")" >page || status=$?
		[ "$d" -ge 18 ] || [ $status = 0 ]
		if [ $status = 1 ] && [ -z "$confirmed" ]; then
			confirmed=$d
			cat page
			grep -qE '1  since 2026-11-1[789]  canary.*throughput_samples_per_s -1[0-9]' page || grep -q 'since 2026-11-18' page
		fi
	done
	[ -n "$confirmed" ] && [ "$confirmed" -le 22 ] # four nights
	[ "$(sql "SELECT count(*) FROM regression WHERE level = 'confirmed' AND kind = 'worse'")" = 1 ]
	"$FETTLE" regressions fix 1 --note 'fans' -w ws
	run -0 nightly --night 2026-11-30
}
