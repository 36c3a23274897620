#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle history on the sample of nights (tests/unit/nights_sample.h). FETTLE_UPDATE=1 writes the golden files.
bats_require_minimum_version 1.5.0

setup_file() {
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	export TOP GOLDEN=$TOP/tests/golden/nights FETTLE_WORKSPACE=$BATS_FILE_TMPDIR/team
	unset NO_COLOR
	"$FETTLE_BUILD/tests/bench/nights" "$FETTLE_WORKSPACE"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	export LC_ALL=C.UTF-8
}

# $1: golden file; $2: what was printed
golden() {
	[ -z "${FETTLE_UPDATE:-}" ] || cp "$2" "$GOLDEN/$1"
	diff "$GOLDEN/$1" "$2"
}

@test "history: the list, and a series with its plot" {
	"$FETTLE" history >list.txt
	golden list.txt list.txt
	"$FETTLE" history 1 >series.txt
	golden series.txt series.txt
	LC_ALL=C "$FETTLE" history loader --all >ascii.txt
	golden ascii.txt ascii.txt
	[ "$(tr -d '\011\012\040-\176' <ascii.txt | wc -c)" -eq 0 ]
	[ "$(wc -L <series.txt)" -le 110 ]
	[ "$(sed -n '3,15p' ascii.txt | wc -L)" -le 80 ]
}

@test "history: --json, every key of it documented" {
	"$FETTLE" history --json >list.json
	golden list.json list.json
	"$FETTLE" history 1 --since 2026-11-08 --json >series.json
	golden series.json series.json
	for key in $(jq -r '[paths | map(select(type == "string")) | last] | unique | .[]' list.json) \
		$(jq -r '[paths | map(select(type == "string")) | last] | unique | .[]' series.json); do
		grep -q "\`$key\`" "$TOP/orchestrator/report/HISTORY.md" || { echo "not documented: $key"; return 1; }
	done
}

@test "history: names that fit several, one or none" {
	run "$FETTLE" history gpt-ddp
	[ "$status" -eq 0 ]
	[ "$(grep -c 'step_time_ms' <<<"$output")" -eq 3 ]
	[[ $output != *loader* ]]
	run "$FETTLE" history lodaer
	[ "$status" -eq 4 ]
	[[ $output == *'did you mean loader?'* ]]
	run "$FETTLE" history 77
	[ "$status" -eq 4 ]
	run "$FETTLE" history --since yesterday
	[ "$status" -eq 2 ]
	[[ $output == *'wants a night like 2026-11-29, got yesterday'* ]]
	run "$FETTLE" history -w none
	[ "$status" -eq 4 ]
}

@test "history: the page is whole, valid, and nothing in it can act" {
	"$FETTLE" history --html page.html
	[ "$(stat -c %a page.html)" = 600 ]
	tidy -q -e page.html
	run ! grep -q '<script' page.html
	grep -q '&lt;script&gt;alert(1)' page.html
	"$FETTLE" history --html - | cmp - page.html
}

@test "history: looking changes nothing, also where nothing may be written" {
	cp -r "$FETTLE_WORKSPACE" ro
	sum=$(sha256sum <ro/fettle.db)
	"$FETTLE" history -w ro >/dev/null
	"$FETTLE" history 1 -w ro >/dev/null
	"$FETTLE" history --html page.html -w ro
	"$FETTLE" regressions -w ro >/dev/null || true
	"$FETTLE" regressions show 1 -w ro >/dev/null
	[ "$sum" = "$(sha256sum <ro/fettle.db)" ]
	"$FETTLE_BUILD/tests/bench/nights" new 0 0
	run "$FETTLE" history -w new
	[ "$status" -eq 0 ]
	[[ $output == 'no series yet: '* ]]
}
