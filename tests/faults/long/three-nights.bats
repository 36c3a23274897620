#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# 72 hours of `fettle nightly`, called each hour as from cron, for LONG=1: the clock is that of the hour. In the first night
# it is killed again and again and the clock jumps, in the second the disk is full for hours, in the third the scheduler does
# not answer. In the end there is what undisturbed nights leave: each look once, with the same values; memory and database
# do not grow beyond what a night adds, and what gc lists is gone. Two minutes.

load ../common

setup_file() {
	cd "$BATS_TEST_DIRNAME/../../.." || exit 1
	export FETTLE=${FETTLE:-$PWD/build/fettle} TZ=UTC
	export BENCH=${FETTLE_BUILD:-$PWD/build/release}/tests/bench/probe_bench
	export FAIL_CALLS="write fsync fdatasync rename open mkdir ftruncate unlink"
	build_failnth
	cc -shared -fPIC -o "$BATS_FILE_TMPDIR/clockjump.so" tests/faults/clockjump.c -ldl
	FIRST=$(date -d '2027-03-01 12:10' +%s)
	export FIRST
}

setup() {
	W=$BATS_TEST_TMPDIR/ws
	export CLOCK_OFFSET=$BATS_TEST_TMPDIR/offset
	truth=$BATS_TEST_TMPDIR/truth.json
	mkdir "$BATS_TEST_TMPDIR/night"
	for i in 1 2 3 4 5 6; do
		sed "s/name = \"canary\"/name = \"canary$i\"/" tests/fixtures/recipes/canary.lua >"$BATS_TEST_TMPDIR/night/canary$i.lua"
	done
	answers
}

answers() { echo '{"fixed": true, "sd_run": 0.005}' >"$truth"; }
no_answer() { echo '{"fixed": true, "sd_run": 0.005, "faults": {"submit_lost": 1}}' >"$truth"; }
ask() { sqlite3 -readonly "$W/fettle.db" "$1"; }
clock_at() { echo $((FIRST + $1 * 3600 - $(date +%s))) >"$CLOCK_OFFSET"; } # HOUR

# nightly: one call; sets rc and kib
nightly() {
	rc=0
	LD_PRELOAD=$BATS_FILE_TMPDIR/clockjump.so:$BATS_FILE_TMPDIR/failnth.so FAIL_PATH="$W/*" \
		"$BENCH" run "$FETTLE" nightly "$BATS_TEST_TMPDIR/night" -q -w "$W" --fake "$truth" >"$W.out" 2>"$W.err" || rc=$?
	kib=$(tail -n 1 "$W.err" | awk '{ print $4 }')
	[ ! -s "$W/fettle.db" ] || [ "$(ask 'PRAGMA integrity_check')" = ok ]
}

# A call that the scheduler does not answer waits for it, until somebody ends it; sets rc.
waiting_nightly() {
	local told
	told=$(ask "SELECT count(*) FROM event WHERE kind = 'submit'")
	LD_PRELOAD=$BATS_FILE_TMPDIR/clockjump.so "$FETTLE" nightly "$BATS_TEST_TMPDIR/night" -q -w "$W" --fake "$truth" >"$W.out" 2>"$W.err" 3>&- &
	wait_for more_submits "$told"
	kill -TERM $!
	rc=0
	wait $! || rc=$?
}
more_submits() { [ "$(ask "SELECT count(*) FROM event WHERE kind = 'submit'")" -gt "$1" ]; }

# One look a night and canary, one trial a slot that counts.
looks() {
	ask "SELECT n.night, c.name, b.idx, t.slot, count(*) FROM canary n JOIN stage s ON s.id = n.stage JOIN campaign c ON c.id = s.campaign
		JOIN block b ON b.stage = s.id JOIN attempt a ON a.block = b.id AND a.state = 'valid' JOIN trial t ON t.attempt = a.id
		GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
	ask "SELECT night, count(*) FROM point GROUP BY 1 ORDER BY 1"
}
of_night() { ask "SELECT count(*) FROM canary WHERE night = '2027-03-0$1'"; }

# What gc lists can go and goes; then there is nothing left, and no result is missing.
collect() {
	before=$(looks)
	"$FETTLE" gc --yes -w "$W" >/dev/null
	[ "$("$FETTLE" gc --json -w "$W" | jq '[.items[] | select(.stays | not)] | length')" = 0 ]
	[ "$(looks)" = "$before" ]
}

@test "72 hours: killed, with a clock that jumps, a full disk and a scheduler that is away" {
	# undisturbed: the first call of each day does it all
	for hour in 0 24 48; do
		clock_at $hour
		nightly
		[ "$rc" -eq 0 ]
	done
	looks >"$BATS_TEST_TMPDIR/wanted"
	[ "$(grep -c canary "$BATS_TEST_TMPDIR/wanted")" -ge 72 ]
	rm -rf "$W"
	killed=0 full=0 away=0 most=0
	for hour in {0..71}; do
		unset FAIL_WITH FAIL_NTH FAIL_LAST
		at=$hour
		answers
		case $hour in
		[0-9]) export FAIL_WITH=KILL FAIL_NTH=$((50 + 130 * hour)) ;;
		10) at=17 ;;
		11) at=2 ;;
		25) at=23 ;;
		24 | 26 | 27 | 28) export FAIL_WITH=ENOSPC FAIL_NTH=$((1 + (hour - 24) * 40)) FAIL_LAST=100000000 ;;
		48 | 49 | 50) no_answer ;;
		esac
		clock_at "$at"
		case $hour in
		48 | 49 | 50) waiting_nightly ;;
		*) nightly ;;
		esac
		echo "hour $hour, clock $at: $rc, ${kib:-?} KiB: $(tail -n 2 "$W.err" | head -n 1)"
		case $hour:$rc in
		[0-9]:137) killed=$((killed + 1)) ;;
		2[4678]:[34]) full=$((full + 1)) ;;
		4[89]:3 | 50:3) away=$((away + 1)) ;;
		*:0) ;;
		*) cat "$W.out" "$W.err" && false ;;
		esac
		[ "${kib:-0}" -le "$most" ] || most=$kib
		[ "$hour" -ne 23 ] || { first_kib=$most && most=0; }
		case $hour in
		23 | 47 | 71)
			[ "$(of_night $((hour / 24 + 1)))" = 6 ]
			collect
			sizes+=("$(stat -c %s "$W/fettle.db")")
			;;
		esac
	done
	echo "# $killed calls were killed, $full met a full disk, $away no scheduler; at most $most KiB of memory (the first night $first_kib)," \
		"database ${sizes[*]} bytes after each night" >&3
	[ $killed -ge 3 ]
	[ $full -ge 3 ]
	[ $away -ge 1 ]
	looks >"$BATS_TEST_TMPDIR/got"
	diff "$BATS_TEST_TMPDIR/wanted" "$BATS_TEST_TMPDIR/got"
	[ "$(ask "SELECT count(*) FROM attempt WHERE state IN ('planned', 'submitted')")" = 0 ]
	[ "$most" -le $((first_kib * 3 / 2)) ]
	[ $((sizes[2] - sizes[1])) -le $((2 * (sizes[1] - sizes[0]) + 262144)) ]
	"$FETTLE" status -w "$W"
}
