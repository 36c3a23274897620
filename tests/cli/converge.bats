#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The long run of a fix that waits for convergence, through the real agent on this machine.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	FETTLE=${FETTLE:-$PWD/build/fettle}
	export PATH=${FETTLE_BUILD:-$PWD/build/release}/tests/workloads:$PATH
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
}

sql() { sqlite3 "$FETTLE_WORKSPACE/fettle.db" "$1"; }

@test "a larger batch is pending, and validated once its loss holds at equal samples" {
	"$FETTLE" run -q tests/fixtures/recipes/planted-converge.lua
	[ "$(sql "SELECT state FROM fix")" = "accepted, pending convergence" ]
	run -0 "$FETTLE" converge -q
	[ "$(sql "SELECT state FROM fix")" = validated ]
	sql "SELECT note FROM stage WHERE kind = 'converge'" | grep -q 'loss at equal samples .* over 2 seeds of 600 steps'
	[ "$(sql "SELECT count(*) FROM v_trial WHERE stage_kind = 'converge' AND counted")" = 4 ]
	[ "$(sql "SELECT min(n) FROM (SELECT max(value) AS n FROM v_metric WHERE stage_kind = 'converge' AND metric = 'loss' AND stat = 'n' GROUP BY trial)")" = 600.0 ]
	grep -q 'Stage .*, converge: 2 of 2 blocks valid' "$FETTLE_WORKSPACE/reports/campaign-1.md"
	! "$FETTLE" recommend --as env | grep -q 'Pending convergence' || false
	# it needs no second one
	run -4 "$FETTLE" converge -q
	[[ $output == *"is validated"* ]]
}

@test "a loss that creeps up in the long run only is not held: exit status 1, and no recommendation" {
	"$FETTLE" run -q tests/fixtures/recipes/planted-creep.lua
	[ "$(sql "SELECT state FROM fix")" = "accepted, pending convergence" ]
	run -1 "$FETTLE" converge -q
	[ "$(sql "SELECT state FROM fix")" = "rejected: loss not held" ]
	run -1 "$FETTLE" recommend
	[[ $output == *"did not hold the loss"* ]]
	"$FETTLE" recommend --force | grep -q 'REJECTED: a long run of this fix did not hold the loss'
}

@test "a campaign without a fix has nothing to converge, and says so" {
	"$FETTLE" run -q tests/fixtures/recipes/planted-null.lua
	run -4 "$FETTLE" converge
	[[ $output == *"has no fix"* ]]
}

@test "a fix whose environment changed has expired" {
	"$FETTLE" run -q tests/fixtures/recipes/planted-converge.lua
	! "$FETTLE" status | grep -q expired || false
	sql "UPDATE fix SET fingerprint = json_set(fingerprint, '\$.kernel', '2.6.32')"
	"$FETTLE" status | grep -q 'kernel: 2.6.32 -> '
	[ "$("$FETTLE" status --json | jq -r '.[0].expired | length')" = 1 ]
	"$FETTLE" recommend 2>&1 >/dev/null | grep -q 'this fix has expired'
}

# recipe FIELDS: as planted-brief, with a file and a command as keys of the environment.
with_keys() {
	sed -e "s|^return {|local c = {|" -e '/^\tquestion/d' "$OLDPWD/tests/fixtures/recipes/planted-brief.lua"
	cat <<-END
		c.fingerprint = { toolchain = { file = "VERSION" }, tool = { command = { "cat", "TOOL" } } }
		$1
		return c
	END
}

@test "a fix expires when a key of the recipe's own changes, read again or measured again" {
	cd "$BATS_TEST_TMPDIR"
	with_keys '' >fix.lua
	with_keys 'c.knobs, c.blocks.aa = nil, 2' >again.lua
	echo 'gcc 12' >VERSION
	echo '1.0' >TOOL
	"$FETTLE" run -q fix.lua
	[ "$(sql "SELECT json_extract(fingerprint, '\$.toolchain') || ' ' || json_extract(fingerprint, '\$.tool') FROM fix")" = 'gcc 12 1.0' ]
	[ "$(sql "SELECT count(DISTINCT environment) FROM v_environment")" = 1 ]
	! "$FETTLE" status | grep -q expired || false
	"$FETTLE" recommend | grep -q '^#   toolchain: gcc 12$'
	# a file of this machine is read again; a program only runs when something is measured
	echo 'gcc 13' >VERSION
	echo '2.0' >TOOL
	[ "$("$FETTLE" status --json | jq -c '.[0].expired')" = '["toolchain: gcc 12 -> gcc 13"]' ]
	"$FETTLE" run -q again.lua
	[ "$("$FETTLE" status --json | jq -c '.[] | select(.campaign == 1).expired | sort')" = '["tool: 1.0 -> 2.0","toolchain: gcc 12 -> gcc 13"]' ]
	"$FETTLE" recommend 1 2>&1 >/dev/null | grep -q 'tool: 1.0 -> 2.0'
	[ "$(sql "SELECT count(DISTINCT environment) FROM v_environment")" = 2 ]
}
