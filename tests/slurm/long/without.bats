# SPDX-License-Identifier: GPL-2.0-or-later
# Built and run where libslurm-dev is not installed: all but scheduler slurm is there, slurm_cli does its work. LONG=1.

setup_file() {
	export WITHOUT=$BATS_TEST_DIRNAME/../without.sh TREE=build/without/release
	"$WITHOUT" make -s -j2 BUILD=build/without all workloads "$TREE/tests/unit/sched_contract_test" \
		>"$BATS_FILE_TMPDIR/made" 2>&1 || { tail -n 20 "$BATS_FILE_TMPDIR/made"; return 1; }
}

setup() {
	load ../common
}

there() {
	run "$WITHOUT" env FETTLE_BUILD="$PWD/$TREE" FETTLE="$PWD/$TREE/fettle" "$@"
	echo "$output"
	[ "$status" = 0 ]
}

@test "the build says what is left out" {
	run cat "$BATS_FILE_TMPDIR/made"
	[[ $output == *'fettle-slurm is left out: slurm/slurm.h is missing'* ]]
	[ ! -e "$TREE/fettle-slurm" ]
	[ -x "$TREE/fettle" ]
}

@test "doctor says so, and what does in its place" {
	run "$WITHOUT" "$TREE/fettle" doctor
	echo "$output"
	[[ $output == *'missing  fettle-slurm'*'install libslurm-dev'*'until then scheduler slurm_cli'* ]]
	[[ $output == *'ok       scheduler slurm_cli Slurm '* ]]
}

@test "what every scheduler must do, slurm_cli does" {
	there env FETTLE_TEST_SLURM="$BATS_TEST_TMPDIR" "$TREE/tests/unit/sched_contract_test"
	[[ $output == *'on slurm_cli'* ]]
	[[ $output != *'on slurm'$'\n'* ]]
}

@test "all that scheduler slurm does on this cluster, slurm_cli does" {
	there env FETTLE_WAY=slurm_cli bats --tap --filter-tags '!helper' tests/slurm/sched.bats
	[ "$(grep -c '^ok' <<<"$output")" -gt 20 ]
}

@test "a campaign through Slurm's commands" {
	there bats --tap -f "through Slurm's commands comes" tests/slurm/long/commands.bats
}
