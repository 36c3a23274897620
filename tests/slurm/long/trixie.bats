# SPDX-License-Identifier: GPL-2.0-or-later
# The same sources built against the headers of Slurm 24.11 and run against its daemons, in a root of Debian 13
# ($FETTLE_TRIXIE: where it is kept). LONG=1.

setup_file() {
	export TRIXIE=$BATS_TEST_DIRNAME/../trixie.sh ROOT=${FETTLE_TRIXIE:-${BUILD%/*}/trixie-root}
	"$TRIXIE" make "$ROOT" >"$BATS_FILE_TMPDIR/made" 2>&1 || { tail -n 5 "$BATS_FILE_TMPDIR/made"; return 1; }
	"$TRIXIE" run "$ROOT" make -s -j2 BUILD=build/trixie programs workloads build/trixie/release/tests/unit/sched_contract_test >"$BATS_FILE_TMPDIR/made" 2>&1 ||
		{ tail -n 20 "$BATS_FILE_TMPDIR/made"; return 1; }
}

setup() {
	load ../common
}

there() {
	run "$TRIXIE" run "$ROOT" env FETTLE_BUILD="$PWD/build/trixie/release" "$@"
	echo "$output"
	[ "$status" = 0 ]
}

@test "it is another Slurm" {
	# shellcheck disable=SC2016 # for the inner shell
	there bash -c 'printf "ClusterName=c\nSlurmctldHost=localhost\n" >/tmp/hello.conf
		SLURM_CONF=/tmp/hello.conf "$FETTLE_BUILD/fettle-slurm"' <<<'{"id":1,"op":"hello"}'
	[[ $output == *'"slurm_header":"24.11.'* ]]
}

@test "scheduler slurm does all that it does on this machine's Slurm" {
	there bats --tap tests/slurm/contract.bats tests/slurm/sched.bats
	[ "$(grep -c '^ok' <<<"$output")" -gt 20 ]
}

@test "scheduler slurm_cli, too" {
	there env FETTLE_WAY=slurm_cli bats --tap --filter-tags '!helper' tests/slurm/sched.bats
	[ "$(grep -c '^ok' <<<"$output")" -gt 20 ]
}

@test "whole campaigns come to what they come to without a cluster" {
	there bats --tap tests/slurm/campaign.bats
}

@test "a controller whose name does not resolve: told within the bound, once and not for each attempt" {
	# shellcheck disable=SC2016 # for the inner shell
	there bash -c 'printf "ClusterName=c\nSlurmctldHost=no-such.invalid\nMessageTimeout=5\n" >/tmp/nameless.conf
		SLURM_CONF=/tmp/nameless.conf "$FETTLE_BUILD/fettle" doctor || true'
	for way in 'slurm ' slurm_cli; do
		line=$(grep "scheduler $way" <<<"$output")
		[[ $line == missing*'name resolution'*'attempt number'*' times)'* ]]
		[ "$(grep -o 'name resolution' <<<"$line" | wc -l)" -eq 1 ]
	done
	[[ $output == *'fettle-slurm did not answer within 15 s and was ended'* || $output == *'controller cannot be reached'* ]]
}
