# SPDX-License-Identifier: GPL-2.0-or-later
# A campaign on a cluster that misbehaves. LONG=1. It must come to what an undisturbed one comes to.

setup() {
	load ../common
	load ../campaign
	WS=$BATS_TEST_TMPDIR/ws
}

teardown() {
	end_all_jobs
	cluster wait
}

start() {
	local args=(run "$RECIPE")
	[ "$(count campaign 2>/dev/null)" != 1 ] || args=(resume)
	"$FETTLE" "${args[@]}" -q -w "$WS" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	pid=$!
}

finish() {
	status=0
	wait "$pid" || status=$?
	cat "$BATS_TEST_TMPDIR/out"
	[ "$status" = 0 ]
	same_as_local
	# none orphaned
	wait_for no_jobs
}

@test "kill -9 at ten different moments" {
	start
	for ms in 150 900 400 1300 700 200 1700 1100 500 1500; do
		sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
		kill -9 $pid 2>/dev/null || break
		wait $pid || true
		start
	done
	finish
}

@test "somebody cancels the jobs" {
	start
	wait_for has_job 3
	scancel -u "$(id -un)"
	finish
}

@test "a node goes down under a job" {
	start
	for ((i = 0; i < 2400; i++)); do
		node=$(squeue -h -t running -o %B | head -n 1)
		[ -n "$node" ] && break
		sleep 0.05
	done
	scontrol update nodename="$node" state=down reason=test
	sleep 1
	scontrol update nodename="$node" state=resume || true
	finish
}

@test "slurmctld hangs for a while" {
	start
	wait_for has_job 2
	cluster signal slurmctld STOP
	sleep 8
	cluster signal slurmctld CONT
	finish
}

# Jobs that ended meanwhile may run on in its books until their nodes register, or be started again, and then find their attempt
# claimed: no_jobs waits for both.
@test "slurmctld is killed and comes back without its last seconds" {
	start
	wait_for has_job 3
	cluster signal slurmctld KILL
	sleep 3
	cluster up slurmctld
	finish
}

@test "the helper is killed again and again" {
	start
	for ((i = 0; i < 8; i++)); do
		sleep 0.8
		pkill -9 -P $pid -x fettle-slurm || true
	done
	finish
}
