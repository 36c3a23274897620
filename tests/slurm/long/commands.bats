# SPDX-License-Identifier: GPL-2.0-or-later
# The other way to the same daemons: all that scheduler slurm must do, done by slurm_cli. LONG=1.

setup() {
	load ../common
	load ../campaign
	WS=$BATS_TEST_TMPDIR/ws
}

@test "a campaign through Slurm's commands comes to what the same one comes to on this machine" {
	run "$FETTLE" run -s slurm_cli -w "$WS" "$RECIPE"
	echo "$output"
	[ "$status" = 0 ]
	same_as_local
	end_all_jobs
}

@test "scheduler slurm_cli does all that slurm does" {
	FETTLE_WAY=slurm_cli run bats --tap --filter-tags '!helper' "$BATS_TEST_DIRNAME/../sched.bats"
	echo "$output"
	[ "$status" = 0 ]
	[ "$(grep -c '^ok' <<<"$output")" -gt 20 ]
}
