# SPDX-License-Identifier: GPL-2.0-or-later
# The other way to the same daemons: all that scheduler slurm must do, done by slurm_cli. LONG=1.

@test "scheduler slurm_cli does all that slurm does" {
	FETTLE_WAY=slurm_cli run bats --tap --filter-tags '!helper' "$BATS_TEST_DIRNAME/../sched.bats"
	echo "$output"
	[ "$status" = 0 ]
	[ "$(grep -c '^ok' <<<"$output")" -gt 20 ]
}
