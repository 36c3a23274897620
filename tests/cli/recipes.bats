#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Recipes from the command line: a bad one is refused with its line, status 2, and leaves no trace.

bats_require_minimum_version 1.5.0

setup() {
	FETTLE=${FETTLE:-$BATS_TEST_DIRNAME/../../build/release/fettle}
	BAD=$BATS_TEST_DIRNAME/../fixtures/recipes/bad
	unset FETTLE_SITE FETTLE_RECIPE_PATH
	cd "$BATS_TEST_TMPDIR" || return
}

@test "each bad recipe: one line that names file and line, status 2, nothing stored" {
	local n=0 f line
	for f in "$BAD"/*.lua; do
		line=$(grep -n -e '-- HERE' "$f" | cut -d: -f1)
		run "$FETTLE" run "$f"
		[ "$status" -eq 2 ] || { echo "$f: status $status: $output"; return 1; }
		[ "${#lines[@]}" -eq 1 ] || { echo "$f: $output"; return 1; }
		[[ $output == *"/$(basename "$f"):${line:-1}: "* ]] || { echo "$f: $output"; return 1; }
		n=$((n + 1))
	done
	[ "$n" -ge 40 ]
	[ ! -e fettle-workspace/fettle.db ] || [ "$(sqlite3 fettle-workspace/fettle.db 'SELECT count(*) FROM campaign')" -eq 0 ]
}

@test "a command that does not exist is refused before anything runs" {
	printf 'return { name = "c", objective = "trial_wall_s",\n\tworkload = { command = { "no-such-command" } } }\n' >c.lua
	run "$FETTLE" run c.lua
	[ "$status" -eq 2 ]
	[[ $output == *"c.lua:2: workload.command: command not found: \"no-such-command\""* ]]
	[ ! -e fettle-workspace/fettle.db ]
}

@test "the same campaign gives the same plan each time" {
	printf 'return { name = "c", objective = "trial_wall_s", workload = { command = { "true" } },\n' >c.lua
	printf '\tknobs = { "jemalloc", OMP_NUM_THREADS = { 1 }, num_workers = { 1, 2 } } }\n' >>c.lua
	"$FETTLE" plan c.lua >first
	for _ in 1 2 3 4 5; do
		"$FETTLE" plan c.lua | cmp first -
	done
}

@test "a campaign that exceeds the site's cap names both files" {
	printf 'return { caps = { trials = 10 } }\n' >site.lua
	printf 'return { name = "c", objective = "trial_wall_s", workload = { command = { "true" } },\n' >c.lua
	printf '\tbudget = { trials = 11 } }\n' >>c.lua
	FETTLE_SITE=site.lua run "$FETTLE" check c.lua
	[ "$status" -eq 2 ]
	[[ $output == *"c.lua:2: budget.trials: 11 is more than this site allows: 10 ("*"site.lua:1: caps.trials)"* ]]
}

# site.lua, user.lua, a workload file and a campaign that all say something.
layers() {
	export XDG_CONFIG_HOME=$PWD/config FETTLE_SITE=$PWD/site.lua
	mkdir -p config/fettle/mine/knobs more/workloads
	cat >site.lua <<-'END'
		return {
			defaults = { mode = "quick", resources = { account = "all", partition = "gpu" },
				workload = { env = { SITE = "1" } } },
			caps = { trials = 1000 }, forbidden = { NCCL_PROTO = "no \"LL128\"\nhere" },
			recipe_path = { "more" },
		}
	END
	cat >config/fettle/user.lua <<-'END'
		return { recipe_path = { "mine" },
			defaults = { resources = { account = "proj42" }, mode = "standard" } }
	END
	cat >more/workloads/w.lua <<-'END'
		return { command = { "true", "--n", 3 },
			env = { W = "2" } }
	END
	cat >c.lua <<-'END'
		return { name = "c", objective = "trial_wall_s",
			workload = workload("w", { workdir = "/tmp" }), mode = "strict",
			knobs = { "pin_memory", OMP_NUM_THREADS = { 4, 8 } } }
	END
}

@test "check --effective: each value of campaign, workload file, user and site, with its file and line" {
	layers
	"$FETTLE" check --effective c.lua >shown
	cat shown
	while read -r path value from place; do
		grep -qE "^$path = $value +$from +$place\$" shown || { echo "not there: $path = $value $from $place"; return 1; }
	done <<-END
		mode "strict" campaign $PWD/c.lua:2
		resources.account "proj42" user $PWD/config/fettle/user.lua:2
		resources.partition "gpu" site $PWD/site.lua:2
		workload.env.SITE "1" site $PWD/site.lua:3
		workload.env.W "2" workload $PWD/more/workloads/w.lua:2
		workload.workdir "/tmp" campaign $PWD/c.lua:2
		caps.trials 1000 site $PWD/site.lua:4
	END
	grep -qE '^workload.command = \{ "true", "--n", 3 \} +workload ' shown
	grep -qE '^knobs.OMP_NUM_THREADS = \{ 4, 8 \} +campaign ' shown
	grep -qF 'forbidden.NCCL_PROTO = "no \"LL128\"\nhere"' shown
	"$FETTLE" check --effective --json c.lua >shown.json
	[ "$(jq '.values | length' shown.json)" -eq "$(wc -l <shown)" ]
	[ "$(jq -c '.values[] | select(.path == "workload.command") | [.value, .from, .line]' shown.json)" = \
		'[["true","--n",3],"workload",1]' ]
	run "$FETTLE" check --effective c.lua c.lua
	[ "$status" -eq 2 ]
	echo 'return { name = 7 }' >bad.lua
	run "$FETTLE" check --effective bad.lua
	[ "$status" -eq 2 ]
	[[ $output == *'bad.lua:1: name: expected a text'* ]]
}

@test "user.lua: the user's own defaults and knobs, under the campaign and over the site; stored with a campaign" {
	layers
	"$FETTLE" knobs new my_knob >config/fettle/mine/knobs/my_knob.lua
	sed -i 's/"pin_memory"/"my_knob"/; s/mode = "strict",//' c.lua
	run "$FETTLE" check c.lua
	[ "$status" -eq 0 ]
	[[ $output == *'2 knobs, mode standard' ]]
	run "$FETTLE" doctor
	[[ $output == *'own defaults'*"$PWD/config/fettle/user.lua"* ]]
	printf '{"sd_run":0.01}' >truth.json
	"$FETTLE" run c.lua -q -s fake --fake truth.json || [ $? -eq 1 ]
	[ "$(sqlite3 fettle-workspace/fettle.db "SELECT count(*) FROM recipe_source WHERE name = 'user' AND text LIKE '%proj42%'")" -eq 1 ]
	echo 'return { defaults = { name = "x" } }' >config/fettle/user.lua
	"$FETTLE" report >/dev/null # the campaign has its own
	run "$FETTLE" check c.lua
	[ "$status" -eq 2 ]
	[[ $output == *'user.lua:1: defaults.name: each campaign says this itself'* ]]
	echo 'return { caps = { trials = 1 } }' >config/fettle/user.lua
	run "$FETTLE" check c.lua
	[ "$status" -eq 2 ]
	[[ $output == *'user.lua:1: caps'* ]]
}
