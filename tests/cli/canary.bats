#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A canary on this machine, through the real agent: three nights, a slow library on the third.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	FETTLE=${FETTLE:-$PWD/build/fettle}
	export PATH=${FETTLE_BUILD:-$PWD/build/release}/tests/workloads:$PATH
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
	SPEED=$BATS_TEST_TMPDIR/speed
	cat >"$BATS_TEST_TMPDIR/c.lua" <<-END
		return {
			name = "three-nights",
			workload = {
				command = { "sh", "-c", 'PLANT_SPEED="\${PLANT_SPEED:-\$(cat $SPEED)}" exec planted --fixed --noise 0 --sleep-ms 2' },
				window = { warmup_steps = 1, steps = 5 },
				metrics = { file = true },
			},
			objective = { metric = "throughput_samples_per_s", stat = "median" },
			canary = true,
			fingerprint = { speed = { file = "$SPEED", set = { env = { PLANT_SPEED = "{value}" } } } },
			warmup_trials = 0,
		}
	END
}

sql() { sqlite3 "$FETTLE_WORKSPACE/fettle.db" "$1"; }

# One night; those before it become a day older.
night() {
	[ ! -e "$FETTLE_WORKSPACE" ] || sql "UPDATE point SET night = date(night, '-1 day'); UPDATE canary SET night = date(night, '-1 day')"
	echo "$1" >"$SPEED"
	"$FETTLE" run -q "$BATS_TEST_TMPDIR/c.lua" >"$BATS_TEST_TMPDIR/out" || {
		cat "$BATS_TEST_TMPDIR/out"
		return 1
	}
}

@test "the reference keeps the library of the first night, so the pair names the culprit of the third" {
	night as-it-is
	grep -q '^Night .*: throughput_samples_per_s .* samples/s, .* against the same, 2 blocks$' "$BATS_TEST_TMPDIR/out"
	grep -q '^  throughput_samples_per_s median (pair): ' "$BATS_TEST_TMPDIR/out"
	! grep -q 'Fix:\|Baseline:' "$BATS_TEST_TMPDIR/out" || false
	night as-it-is
	night slow
	grep -q 'against speed=as-it-is, 2 blocks$' "$BATS_TEST_TMPDIR/out"
	[ "$(sql "SELECT count(*) FROM v_series WHERE role = 'pair'")" = 3 ]
	[ "$(sql "SELECT count(DISTINCT series) FROM v_series WHERE metric = 'throughput_samples_per_s' AND stat = 'median'")" = 3 ]
	# a step takes 1.30 of its time: 0.769 of the throughput, in the arm as it stands alone
	[ "$(sql "SELECT group_concat(round(value, 2)) FROM (SELECT value FROM v_series WHERE role = 'pair' ORDER BY night)")" = 1.0,1.0,0.77 ]
	[ "$(sql "SELECT max(value) / min(value) < 1.001 FROM v_series WHERE role = 'reference'")" = 1 ]
	# each point knows what it holds for
	[ "$(sql "SELECT group_concat(speed) FROM (SELECT json_extract(text, '\$.speed') AS speed FROM v_series s JOIN environment e ON e.id = s.environment WHERE role = 'pair' ORDER BY night)")" = as-it-is,as-it-is,slow ]
	"$FETTLE" status 3 | grep -q 'canary done: .* against speed=as-it-is'
	"$FETTLE" report --json 3 | jq -e '(.canaries | length) == 1 and (.series[] | select(.role == "pair") | .nights == 3 and .last < 0.8 and .usual > 0.95)'
	"$FETTLE" report 3 | grep -q '^## Nights'
	! "$FETTLE" report 3 | grep -q 'default stays\|Alpha' || false
}
