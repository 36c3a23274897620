# SPDX-License-Identifier: GPL-2.0-or-later
# The ends of a job, and the troubles of a cluster, that take their time. LONG=1.

setup() {
	load ../common
	answer='' id=''
	drive_start
}

teardown() {
	drive_stop
	end_all_jobs
	cluster wait
}

@test "the time limit" {
	submit "$(new_token)" "$(new_block 'sleep 200')" time=60
	say until ended 300 "$id"
	expect "$id ended timeout * n? TIMEOUT (TimeLimit)"
}

@test "held, then released" {
	submit "$(new_token)" "$(new_block true)" nodelist=n1
	scontrol hold "$id"
	sleep 2
	say poll "$id"
	expect "$id pending none 0 - JobHeld*"
	scontrol release "$id"
	say until ended 300 "$id"
	expect "$id ended ok 0 n1 COMPLETED"
}

@test "suspended is running" {
	dir=$(new_block "until [ -e '$BATS_TEST_TMPDIR/go' ]; do sleep 0.1; done")
	submit "$(new_token)" "$dir"
	say until running 300 "$id"
	begun "$dir"
	scontrol suspend "$id"
	sleep 2.1
	say poll "$id"
	expect "$id running none 0 n? SUSPENDED"
	scontrol resume "$id"
	touch "$BATS_TEST_TMPDIR/go"
	say until ended 300 "$id"
	expect "$id ended ok 0 n? COMPLETED"
}

@test "slurmd dies under the job" {
	cluster set SlurmdTimeout=10
	submit "$(new_token)" "$(new_block 'sleep 300')" nodelist=n4
	say until running 300 "$id"
	cluster signal n4 KILL
	say until ended 300 "$id"
	cluster up n4
	cluster set SlurmdTimeout=60
	expect "$id ended node_fail * n4 NODE_FAIL (NodeDown)"
}

@test "the helper hangs: it is ended within its bound, and the next question starts another" {
	submit "$(new_token)" "$(new_block 'sleep 100')"
	say until running 300 "$id"
	say kill 19
	sleep 2.1
	say poll "$id"
	expect "$id unknown none 0 n? fettle-slurm did not answer within 15 s and was ended*"
	say poll "$id"
	sleep 2.1
	say poll "$id"
	expect "$id running none 0 n? -"
}

@test "munged is away and comes back" {
	cluster signal munged KILL
	sleep 0.2
	say capacity
	cluster up munged
	expect "temp *is munged running here*"
	say capacity
	expect "ok 4 4 4 *"
}

# slurmctld saves its state some seconds late. Killed in between it forgets the start of the job and starts it again,
# while the first agent still runs: restart count 0, so only the agent's claim can tell.
@test "slurmctld is killed right after the start and starts the job twice: the block runs once" {
	dir=$(new_block "echo ran >>$BATS_TEST_TMPDIR/ran; sleep 25")
	token=$(new_token)
	submit "$token" "$dir"
	sleep 6 # the submit itself is saved by then, the start perhaps not
	say until running 300 "$id"
	cluster signal slurmctld KILL
	sleep 1
	cluster up slurmctld
	say until ended 300 "$id"
	sleep 1
	[ "$(wc -l <"$BATS_TEST_TMPDIR/ran")" = 1 ]
}

@test "slurmctld killed without warning while a job runs: the job survives" {
	submit "$(new_token)" "$(new_block 'sleep 30')"
	say until running 300 "$id"
	sleep 15
	cluster signal slurmctld KILL
	sleep 1
	say poll "$id"
	expect "$id unknown none 0 n? *"
	cluster up slurmctld
	say until ended 300 "$id"
	expect "$id ended ok 0 n? COMPLETED"
}

@test "many jobs at once on four nodes" {
	ids=
	for ((i = 0; i < 24; i++)); do
		submit "$(new_token)" "$(new_block 'sleep 0.2')"
		ids="$ids $id"
	done
	# shellcheck disable=SC2086 # a list of numbers
	say until ended 300 $ids
	for ((i = 1; i < 24; i++)); do
		[[ $answer == *\ ended\ ok\ 0\ * ]]
		read -r -t 60 answer <&"${DRIVE_CO[0]}"
	done
	[[ $answer == *\ ended\ ok\ 0\ * ]]
}
