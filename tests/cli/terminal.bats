#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The view of run, watch and status on a real pseudo-terminal, through a terminal emulator (terminal.py):
# what a person sees after a resize, Ctrl-Z, Ctrl-C, and what never reaches a pipe.
bats_require_minimum_version 1.5.0

setup_file() {
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	export TOP
}

setup() {
	PATH=${FETTLE%/*}/tests/workloads:${FETTLE%/*}/release/tests/workloads:$PATH
	export TERM=xterm LC_ALL=C.UTF-8
	unset NO_COLOR FETTLE_WORKSPACE FETTLE_SITE FETTLE_RECIPE_PATH
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	[ -z "$campaign" ] || kill "$campaign" 2>/dev/null || true
}

# Two arms of a planted workload in many short blocks; NAME as it stands in the file. The campaign stands
# still after FREE trials (default 6) until there is a file `gate`, so that a view can be looked at.
write_recipe() {
	mkdir -p begun
	cat >gated <<-END
		#!/bin/sh
		free=\$(ls '$PWD/begun' | wc -l)
		: >"$PWD/begun/\$\$"
		[ "\$free" -lt ${4:-6} ] || until [ -e '$PWD/gate' ]; do sleep 0.02; done
		exec $(command -v planted) "\$@"
	END
	chmod +x gated
	cat >"$1" <<-END
		return {
			name = "$2",
			workload = {
				command = { "$PWD/gated", "--fixed" },
				window = { warmup_steps = 1, steps = 5 },
				metrics = { file = true },
			},
			objective = "throughput_samples_per_s",
			knobs = { { name = "fast", arg = "--fast", flag = true, class = "neutral", default = false, values = { true } } },
			mode = "quick",
			rounds = 1,
			blocks = { aa = ${3:-4}, final = 2, soak = 0 },
			warmup_trials = 0,
			seed = 1,
		}
	END
}

terminal() { /usr/bin/python3 "$TOP/tests/cli/terminal.py" "$@"; }

# The screen that was shown at a step, or the last one with all that scrolled away.
shown() { sed -n "/^== $1/,/^== /p" screens | sed '/^== /d'; }

@test "run: the view shrinks and grows with the terminal and leaves nothing behind" {
	write_recipe r.lua planted 5
	terminal -s 100x40 -d '^effect =size:44x40' -d 'baseline, 1 of 5=size:100x40' -d 'campaign 1 on local=touch:gate' -- \
		"$FETTLE" run -w w r.lua >screens
	cat screens
	shown .effect | grep -q '^▸ baseline  · hypothesis  · experiment  · validation  · fixing$'
	shown 'baseline, 1' | grep -q '^▸···· baseline, 1 of 5$'
	# On each screen there is one view, and nothing of a drawing before it.
	for step in .effect 'baseline, 1' 'campaign 1 on'; do
		for row in '── planted ' 'aa  ' 'blocks  ' 'alpha  ' 'driver  '; do
			[ "$(shown "$step" | grep -c "^$row")" -eq 1 ]
		done
		[ "$(shown "$step" | tail -n 1 | cut -c 1-6)" = driver ]
	done
	# At the end no view is left, and all that was told is.
	[ "$(shown end | grep -cE '^(──|alpha  |driver  |blocks  |left  )')" -eq 0 ]
	shown end | grep -q '== baseline: 5 blocks of the '
	shown end | grep -q '== validation: '
	grep -q '^== end 0' screens
}

@test "run: ASCII where the locale says so, no colour with NO_COLOR, and neither acts on the other" {
	write_recipe r.lua planted
	LC_ALL=C NO_COLOR=1 terminal -t raw -d '^effect =key:\x03' -- "$FETTLE" run -w w r.lua >screens || true
	cat screens
	shown .effect | grep -q '^-- planted -- campaign 1 on local, running --'
	grep -q '^== end 3' screens
	! LC_ALL=C grep -q $'[\x80-\xff]' raw || false
	! grep -q $'\033\[[0-9;]*m' raw || false
	terminal -t coloured -d 'to go on|next: =show' -- "$FETTLE" status -w w 1 >screens
	grep -q $'\033\[2m' coloured
}

@test "a dumb terminal and a pipe get plain lines" {
	write_recipe r.lua planted 2
	touch gate
	TERM=dumb terminal -t raw -- "$FETTLE" run -w w r.lua >screens
	! grep -q $'\033' raw || false
	grep -q 'aa: block 1 done' raw
	"$FETTLE" run -w w r.lua >piped
	! grep -q $'\033' piped || false
	! grep -E '\] +([a-z]+): \1' piped || false
	grep -qE '^\[ +[0-9]+:[0-9]{2}\]    aa: block 1 done$' piped
	"$FETTLE" run --color=always -w w r.lua >piped
	grep -q $'\033\[1m\[ .*\] == baseline' piped
	run -2 "$FETTLE" status --color=sometimes
}

@test "what a recipe says reaches no terminal and no pipe unescaped" {
	write_recipe r.lua planted 2 4
	sed -i 's/^\( *\)knobs = .*/\1knobs = { { name = "A", env = "A", class = "neutral", values = { "\\27[2J\\7" } } },/' r.lua
	terminal -t raw -d '^confirm  =key:\x03' -- "$FETTLE" run -w w r.lua >screens || true
	cat screens
	shown '.confirm' | grep -qF 'confirm  A default → \x1b[2J\x07'
	! grep -q $'\033\[2J' raw || false
	! grep -q $'\a' raw || false
	for command in "status" "status 1" "watch --color=always"; do
		# shellcheck disable=SC2086
		"$FETTLE" $command -w w >piped || true
		! grep -q $'\033\[2J' piped || false
		! grep -q $'\a' piped || false
	done
}

@test "Ctrl-Z gives the terminal back, fg draws anew; a second Ctrl-C leaves at once" {
	write_recipe r.lua planted 5
	terminal -d '^effect =key:\x1a' -d '\[1\]\+ stopped=fg' \
		-d '^effect =show' -d '^effect =key:\x03' -- "$FETTLE" run -w w r.lua >screens || true
	cat screens
	# While it stands still nothing of the view is there.
	[ "$(shown '.*stopped fg' | grep -c '^── planted')" -eq 0 ]
	[ "$(shown '.effect  *show' | grep -c '^── planted')" -eq 1 ]
	grep -q '^== end 3' screens
	shown end | grep -q 'fettle: stopping: cancelling the jobs in flight'
}

@test "a terminal that is closed stops the campaign, resumable; under nohup it goes on" {
	write_recipe r.lua planted 5
	run -3 terminal -d '^effect =hang' -- "$FETTLE" run -w w r.lua
	echo "$output"
	[ "$("$FETTLE" status -w w --json | jq -r '.[0].state, .[0].reason' | paste -sd' ')" = 'stopped stopped by a signal' ]
	nohup "$FETTLE" resume -w w >resumed 2>&1 3>&- &
	campaign=$!
	for _ in $(seq 600); do
		grep -q 'aa: block' resumed && break
		sleep 0.05
	done
	kill -HUP $campaign
	touch gate
	wait $campaign
	[ "$("$FETTLE" status -w w --json | jq -r '.[0].state')" = 'done' ]
}

@test "watch: the view of another process's campaign, its end, and its exit status" {
	write_recipe r.lua planted 5
	"$FETTLE" run -q -w w r.lua >run.out 2>&1 3>&- &
	campaign=$!
	for _ in $(seq 600); do
		[ "$("$FETTLE" status -w w --json 2>/dev/null | jq -r '.[0].blocks_done')" -ge 1 ] 2>/dev/null && break
		sleep 0.05
	done
	# looking on and going away changes nothing
	terminal -d '^effect =key:\x03' -- "$FETTLE" watch -w w >away || true
	grep -q '^== end 3' away
	"$FETTLE" watch -w w >piped 2>&1 3>&- &
	for _ in $(seq 600); do
		[ -s piped ] && break
		sleep 0.05
	done
	terminal -d '^effect =touch:gate' -- "$FETTLE" watch -w w planted >screens
	cat screens
	wait $campaign
	wait
	grep -q '^== end 0' screens
	shown end | grep -q '^Campaign 1, planted: done'
	[ "$(shown end | grep -cE '^(──|alpha  |driver  )')" -eq 0 ]
	! grep -q $'\033' piped || false
	grep -qE '^\[ +[0-9]+:[0-9]+\]    final done: validated: ' piped
	grep -q '^Campaign 1, planted: done$' piped
	# of one that is over: what became of it
	"$FETTLE" watch -w w | grep -q '^Campaign 1, planted: done$'
	"$FETTLE" watch --json -w w | jq -es 'length == 1 and .[0].kind == "stage"'
}

@test "status and watch: a driver that was killed on this host drives nothing" {
	write_recipe r.lua planted 5
	"$FETTLE" run -q -w w r.lua >run.out 2>&1 3>&- &
	campaign=$!
	for _ in $(seq 600); do
		[ "$("$FETTLE" status -w w --json 2>/dev/null | jq -r '.[0].driven')" = true ] && break
		sleep 0.05
	done
	"$FETTLE" status -w w | grep -q "driven by process $campaign on "
	"$FETTLE" watch -w w >piped 2>&1 3>&- &
	watch=$!
	kill -9 $campaign
	wait $campaign || true
	for _ in $(seq 600); do
		grep -q 'nobody drives it: .*resume 1' piped && break
		sleep 0.05
	done
	kill $watch
	cat piped
	[ "$(grep -c 'nobody drives it: .*resume 1' piped)" -eq 1 ]
	"$FETTLE" status -w w | grep -q 'nobody drives it: .*resume 1'
	[ "$("$FETTLE" status -w w --json | jq '.[0].driven')" = false ]
	"$FETTLE" stop -w w
}

@test "status: one campaign on one screen, the same words, and figures as JSON" {
	write_recipe r.lua planted 2
	touch gate
	"$FETTLE" run -q -w w r.lua
	"$FETTLE" status -w w 1 >screen
	cat screen
	[ "$(wc -l <screen)" -le 24 ]
	grep -q '^── planted ── campaign 1 on local, done ──' screen
	# one candidate needs no screen
	grep -q '^✓ baseline  ✓ hypothesis  – experiment  ✓ validation  ✓ fixing$' screen
	grep -qE '^trials +[▁▂▃▄▅▆▇█]+ throughput_samples_per_s [0-9.]+ samples/s, [0-9]+ trials, more is better$' screen
	grep -q '^alpha    0 of 0.05 spent, 0 tests left, 0 of 1 candidates left$' screen
	grep -qE '^fix +fast=true: validated, \+' screen
	"$FETTLE" status -w w 1 --json >json
	jq -e '.[0] | .step == null and .stage_kind == null and .trials > 0 and .alpha == 0.05 and .driven == false' json
	jq -e '.[0].fix | startswith("fast=true: validated")' json
	"$FETTLE" status -w w | grep -q '^   1  planted  *done  *local '
}
