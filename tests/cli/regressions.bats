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

@test "regressions: usage" {
	run -2 "$FETTLE" regressions akc 1 --note x
	[[ $output == *'did you mean ack?'* ]]
	run -2 "$FETTLE" regressions ack 1
	[[ $output == *'--note TEXT'* ]]
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
