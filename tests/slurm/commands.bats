# SPDX-License-Identifier: GPL-2.0-or-later
# Scheduler slurm_cli, where it differs from slurm: commands that are missing, users' defaults, node lists. That it does what
# slurm does: the contract (contract.bats), and long/commands.bats.

setup() {
	load common
	id=''
	export FETTLE_WAY=slurm_cli
}

teardown() {
	drive_stop
	end_all_jobs
}

@test "no commands: what to install" {
	PATH=/usr/bin/nowhere run "$DRIVE" - "$AGENT" </dev/null
	[ "$status" = 1 ]
	[[ $output == 'notfound scheduler slurm_cli: sbatch is not in PATH: install Slurm'*slurm-client* ]]
}

@test "no configuration" {
	SLURM_CONF=/nonexistent/slurm.conf run "$DRIVE" - "$AGENT" </dev/null
	[ "$status" = 1 ]
	[[ $output == 'notfound scheduler slurm_cli: Slurm cannot be used on this machine: SLURM_CONF=/nonexistent/slurm.conf: No such file'* ]]
}

@test "a user's defaults for the commands change nothing" {
	export SQUEUE_FORMAT=%i SQUEUE_STATES=PD SBATCH_PARTITION=nope SBATCH_REQUEUE=1 SLURM_TIME_FORMAT=relative SINFO_FORMAT=%N SBATCH_TIMELIMIT=1
	drive_start
	submit "$(new_token)" "$(new_block 'env; sleep 300')" nodes=2 nodelist='n[1-2]'
	say until running 120 "$id"
	expect "$id running none 0 n1,n2 -"
	scontrol show job "$id" | grep -q 'Requeue=0 '
	scontrol show job "$id" | grep -q 'Partition=tune '
	say capacity
	expect "ok 4 2 4 Slurm *, cluster fettle, partition tune: 2 of 4 nodes idle, 0 down or drained, at most 120 min"
	say cancel "$id"
	say until ended 120 "$id"
	expect "$id ended cancelled * n1,n2 CANCELLED"
}

@test "a job that sbatch queues and that could never start is withdrawn, and refused" {
	drive_start
	token=$(new_token)
	say submit "$token" "$(new_block true)" cpus=64
	expect "refused cannot submit $token: submit: Requested node configuration is not available (no set of nodes*"
	[ -z "$(squeue -h)" ]
	say submit "$token" "$(new_block true)" partition=short time=999
	expect "refused cannot submit $token: submit: 17 minutes are asked for, partition short gives a job 5 at most (MaxTime*"
	[ -z "$(squeue -h)" ]
}
