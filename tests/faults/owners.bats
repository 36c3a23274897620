#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Several fettles at one campaign, in every way that comes to mind: one of them drives it, the others
# are told so, and it ends as if there had been one only.

load common
setup_file() { faults_setup_file; }
setup() { W=$BATS_TEST_TMPDIR/w; }

# Start it in the background and kill it when a block runs.
killed_campaign() {
	"$FETTLE" run -q -w "$W" "$RECIPE" >"$W.out" 2>&1 &
	wait_for agents "$W"
	kill -9 $!
	wait $! 2>/dev/null || true
}

@test "two resumes at the same moment: one goes on, the other is told who does" {
	killed_campaign
	for i in 1 2 3 4; do
		"$FETTLE" resume -q -w "$W" >"$W.$i.out" 2>&1 &
		pids[i]=$!
	done
	went_on=0
	for i in 1 2 3 4; do
		rc=0
		wait "${pids[i]}" || rc=$?
		[ $rc -eq 0 ] || [ $rc -eq 3 ]
		[ $rc -ne 3 ] || grep -q 'is being run by pid' "$W.$i.out"
		went_on=$((went_on + (rc == 0)))
	done
	[ $went_on -ge 1 ] # one that came after the end finds it done
	same_as_reference "$W"
	nothing_left "$W"
}

@test "a stopped process is taken over; when it goes on it does nothing more" {
	gate_agent 1.1
	"$FETTLE" run -q -w "$W" "$RECIPE" >"$W.out" 2>&1 &
	old=$!
	wait_for agents "$W"
	wait_for waits_for_agent # stopped inside a transaction it would keep the others from the database
	kill -STOP $old
	# Alive, though it shows nothing: nobody takes it by mistake, however old its heartbeat.
	sqlite3 "$W/fettle.db" 'UPDATE lease SET heartbeat_us = 1'
	run "$FETTLE" resume -q -w "$W"
	[ "$status" -eq 3 ]
	[[ $output == *"is being run by pid $old"* ]]
	"$FETTLE" resume -q --take-over -w "$W" >"$W.new.out" 2>&1 &
	new=$!
	wait_for taken_over
	touch "$GATE"
	kill -CONT $old
	rc=0
	wait $old || rc=$?
	[ $rc -eq 4 ]
	grep -q "was taken over by pid $new" "$W.out"
	wait $new
	same_as_reference "$W"
	nothing_left "$W"
}

@test "tick from cron beside a running fettle, and then alone" {
	gate_agent 3.1
	"$FETTLE" run -q -w "$W" "$RECIPE" >"$W.out" 2>&1 &
	owner=$!
	wait_for agents "$W"
	for _ in 1 2 3; do
		run "$FETTLE" tick -q -w "$W"
		[ "$status" -eq 3 ]
		[[ $output == *"is being run by pid $owner"* ]]
	done
	kill -9 $owner
	wait $owner 2>/dev/null || true
	touch "$GATE"
	# From here on only ticks, two at a time as from two crontabs.
	for _ in $(seq 300); do
		"$FETTLE" tick -q -w "$W" >>"$W.tick" 2>&1 &
		"$FETTLE" tick -q -w "$W" >>"$W.tick" 2>&1 || [ $? -eq 3 ]
		wait $! || [ $? -eq 3 ]
		[ "$(sqlite3 "$W/fettle.db" 'SELECT state FROM campaign')" != "done" ] || break
		sleep 0.05
	done
	same_as_reference "$W"
	nothing_left "$W"
}

# An agent that takes a second to end when it is told to: the next block starts after it, not beside it.
@test "stop, and resume at once: the cancelled agent is waited for" {
	cat >"$BATS_TEST_TMPDIR/slow-agent" <<-END
		#!/bin/sh
		trap 'kill \$p; wait \$p; sleep 1; exit 3' TERM
		${FETTLE_BUILD:-$PWD/build/release}/fettle-agent "\$@" &
		p=\$!
		wait \$p
	END
	chmod +x "$BATS_TEST_TMPDIR/slow-agent"
	export FETTLE_AGENT=$BATS_TEST_TMPDIR/slow-agent
	"$FETTLE" run -q -w "$W" "$RECIPE" >"$W.out" 2>&1 &
	owner=$!
	wait_for agents "$W"
	"$FETTLE" stop -w "$W"
	wait $owner || [ $? -eq 3 ]
	"$FETTLE" resume -q -w "$W" >"$W.new.out" 2>&1 &
	for _ in $(seq 30); do
		[ "$(pgrep -af "slow-agent $W/blocks" | grep -o 'blocks/[0-9.]*' | sort -u | wc -l)" -le 1 ]
		sleep 0.1
	done
	wait $!
	[ "$(sqlite3 "$W/fettle.db" "SELECT count(*) FROM attempt WHERE state <> 'valid' AND reason <> 'cancelled'")" = 0 ]
	same_as_reference "$W"
	nothing_left "$W"
}

# Two login nodes of one cluster are two names for this machine. One of them stops breathing; the other one may take
# over when twelve heartbeats are missing, not before, and the first does nothing more when it wakes up.
@test "two login nodes: refused while it beats, taken over when it lapsed, the old owner is fenced" {
	gate_agent 2.1
	FETTLE_TEST_HOST=login1 FETTLE_TEST_BOOT_ID=boot1 "$FETTLE" run -q -w "$W" "$RECIPE" >"$W.out" 2>&1 &
	old=$!
	wait_for agents "$W"
	run env FETTLE_TEST_HOST=login2 FETTLE_TEST_BOOT_ID=boot2 "$FETTLE" resume -q -w "$W"
	[ "$status" -eq 3 ]
	[[ $output == *"is being run by pid $old on host login1"* ]]
	kill -STOP $old
	sqlite3 -cmd '.timeout 10000' "$W/fettle.db" 'UPDATE lease SET heartbeat_us = 1'
	FETTLE_TEST_HOST=login2 FETTLE_TEST_BOOT_ID=boot2 "$FETTLE" resume -q -w "$W" >"$W.new.out" 2>&1 &
	new=$!
	wait_for taken_over
	kill -CONT $old
	rc=0
	wait $old || rc=$?
	[ $rc -eq 4 ]
	grep -q "was taken over by pid $new on host login2" "$W.out"
	# nor does a command of the first node's take it back while the second one beats
	run env FETTLE_TEST_HOST=login1 FETTLE_TEST_BOOT_ID=boot1 "$FETTLE" tick -q -w "$W"
	[ "$status" -eq 3 ]
	touch "$GATE"
	wait $new
	same_as_reference "$W"
	nothing_left "$W"
}

@test "stop --drain: running blocks end and count, no other starts; resume goes on" {
	gate_agent 2.1
	"$FETTLE" run -q -w "$W" "$RECIPE" >"$W.out" 2>&1 &
	owner=$!
	wait_for agents "$W"
	run "$FETTLE" stop --drain -w "$W"
	[ "$status" -eq 0 ]
	[[ $output == *"starts no further block"* ]]
	touch "$GATE"
	rc=0
	wait $owner || rc=$?
	[ $rc -eq 3 ]
	[ "$(sqlite3 "$W/fettle.db" "SELECT count(*) FROM attempt WHERE state <> 'valid'")" = 0 ]
	[[ "$(sqlite3 "$W/fettle.db" "SELECT reason FROM campaign")" == drained:* ]]
	nothing_left "$W"
	blocks=$(sqlite3 "$W/fettle.db" "SELECT count(*) FROM block")
	[ "$blocks" -ge 1 ]
	"$FETTLE" resume -q -w "$W" >"$W.new.out" 2>&1
	same_as_reference "$W"
}

@test "stop --drain without an owner waits for the running block itself" {
	gate_agent 1.1
	"$FETTLE" run -q -w "$W" "$RECIPE" >"$W.out" 2>&1 &
	wait_for agents "$W"
	kill -9 $!
	wait $! 2>/dev/null || true
	touch "$GATE"
	run "$FETTLE" stop --drain -w "$W"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(sqlite3 "$W/fettle.db" "SELECT group_concat(state) FROM attempt")" = valid ]
	[ "$(sqlite3 "$W/fettle.db" "SELECT state FROM campaign")" = stopped ]
	"$FETTLE" resume -q -w "$W" >"$W.new.out" 2>&1
	same_as_reference "$W"
	nothing_left "$W"
}
