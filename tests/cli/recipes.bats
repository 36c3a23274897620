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
