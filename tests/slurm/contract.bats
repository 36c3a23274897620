# SPDX-License-Identifier: GPL-2.0-or-later
# What every scheduler must do: on a cluster that is slurm and slurm_cli, beside those that need none.

setup() {
	load common
}

teardown() {
	end_all_jobs
}

@test "what every scheduler must do" {
	FETTLE_BUILD=$BUILD FETTLE_TEST_SLURM=$BATS_TEST_TMPDIR run "$BUILD/tests/unit/sched_contract_test"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *'on slurm'$'\n'* ]]
	[[ $output == *'on slurm_cli'* ]]
}
