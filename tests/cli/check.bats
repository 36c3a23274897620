#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# `fettle check` on files that are no campaign: what it prints, its JSON, its exit status.

setup() {
	FETTLE=${FETTLE:?set it to the fettle that is tested}
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	cd "$BATS_TEST_TMPDIR" || exit 1
	export HOME=$BATS_TEST_TMPDIR
	unset FETTLE_SITE FETTLE_RECIPE_PATH
}

@test "each finding is a line: place, severity, setting, what happens, what to write" {
	printf 'A=1\nexport NCCL_BUFFSIZE=16M\n' >x.env
	run "$FETTLE" check x.env
	[ "$status" -eq 2 ]
	[[ ${lines[0]} == 'x.env:2: error: NCCL_BUFFSIZE=16M: "16M" is read as 16: '*'; write: NCCL_BUFFSIZE=16777216 [nccl_integer]' ]]
	[ "${lines[1]}" = 'x.env: 1 error' ]
}

@test "warnings and notes alone give status 0" {
	printf 'NCCL_DEBUG=INFO\nMALLOC_CONF=x:1\n' >x.env
	run "$FETTLE" check x.env
	[ "$status" -eq 0 ]
	[ "${lines[2]}" = 'x.env: 1 warning, 1 note' ]
	echo 'NCCL_DEBUG=WARN' >x.env
	run "$FETTLE" check x.env
	[ "$status" -eq 0 ]
	[ "$output" = 'x.env: nothing to object to' ]
}

@test "JSON has the same, with counts" {
	echo 'NCCL_BUFSIZE=1' >x.env
	run "$FETTLE" check -j x.env
	[ "$status" -eq 2 ]
	[ "$(jq -r '.errors, .warnings, .findings[0].line, .findings[0].rule, .findings[0].write' <<<"$output" | paste -sd' ')" = "1 0 1 nccl_name NCCL_BUFFSIZE=1" ]
}

@test "several files are one environment, and what the machine's nccl.conf says is the weakest" {
	echo 'NCCL_IB_TIMEOUT=23' >.nccl.conf
	echo 'NCCL_MIN_CTAS=16' >a.env
	printf '#!/bin/sh\n#SBATCH --nodes=2\nexport NCCL_MAX_CTAS=8 NCCL_IB_TIMEOUT=22\nsrun ./train\n' >b.sbatch
	run "$FETTLE" check a.env b.sbatch
	[ "$status" -eq 2 ]
	[[ $output == *'.nccl.conf:1: warning: NCCL_IB_TIMEOUT=23: the environment wins'* ]]
	[[ $output == *'a.env:1: error: NCCL_MIN_CTAS=16: the least (16) is above the most (8)'* ]]
}

@test "the version, the network and the nodes can be told" {
	printf 'NCCL_MIN_CTAS=16\nNCCL_SOCKET_NTHREADS=2\n' >x.env
	"$FETTLE" check x.env
	run "$FETTLE" check --nccl-version 2.16.5 x.env
	[ "$status" -eq 2 ]
	[[ $output == *'NCCL 2.16.5 does not read NCCL_MIN_CTAS'*'write: NCCL_MIN_NCHANNELS=16'* ]]
	run "$FETTLE" check --transport ib --nodes 2 x.env
	[ "$status" -eq 2 ]
	[[ $output == *'NCCL_SOCKET_NTHREADS is read by the network Socket alone'* ]]
	run "$FETTLE" check --nccl-version new x.env
	[ "$status" -ne 0 ]
	[[ $output == *'new is no version'* ]]
}

@test "a file that cannot be read, is no text, or that sbatch refuses" {
	run "$FETTLE" check nothing.env
	[ "$status" -eq 2 ]
	[[ $output == *nothing.env* ]]
	printf 'A=\0' >x.env
	run "$FETTLE" check x.env
	[ "$status" -eq 2 ]
	[[ $output == *'x.env: holds a NUL byte'* ]]
	printf '#!/bin/sh\r\n#SBATCH -N 1\r\n' >x.sbatch
	run "$FETTLE" check x.sbatch
	[ "$status" -eq 2 ]
	[[ $output == *'x.sbatch:1: '*DOS* ]]
	run "$FETTLE" check "$TOP/recipes/campaigns/demo.lua" x.env
	[ "$status" -eq 2 ]
	[[ $output == *'a campaign is checked alone'* ]]
}

@test "the job scripts that init is tested with have no error but those that are meant" {
	for f in "$TOP"/tests/fixtures/sbatch/*.sbatch; do
		"$FETTLE" check "$f" >out || [ "$(grep -c ' error: ' out)" = "$(grep -c ' error: Slurm does not read this line' out)" ]
	done
}

@test "a rule of a site at fault is named, and nothing else is said" {
	mkdir -p site/lint
	echo 'return rules { { name = "own", setting = function(s) return s.no.thing end } }' >site/lint/own.lua
	echo 'A=1' >x.env
	run env FETTLE_RECIPE_PATH="$PWD/site" "$FETTLE" check x.env
	[ "$status" -eq 2 ]
	[[ $output == *'site/lint/own.lua:1: '* ]]
}
