# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # helpers of the loaded files set job and pid
# Memory that runs out, on a cluster that bounds it by cgroups (which takes root, and cgroups that can be written). LONG=1.

setup_file() {
	FETTLE_OOM_BASE=$(mktemp -d /tmp/fettle-oom-XXXXXX)
	export FETTLE_OOM_BASE
	FETTLE_CLUSTER_OWNER=$$ "$BATS_TEST_DIRNAME/../cluster.sh" start "$FETTLE_OOM_BASE/c" MessageTimeout=5 \
		TaskPlugin=task/cgroup ProctrackType=proctrack/cgroup SelectTypeParameters=CR_Core_Memory \
		JobAcctGatherType=jobacct_gather/linux
	eval "$("$BATS_TEST_DIRNAME/../cluster.sh" env "$FETTLE_OOM_BASE/c")"
}

teardown_file() {
	"$BATS_TEST_DIRNAME/../cluster.sh" stop "$FETTLE_OOM_BASE/c"
	rm -rf "$FETTLE_OOM_BASE"
	find /sys/fs/cgroup -depth -type d -path '*/slurm_n[1-4]*' -exec rmdir {} + 2>/dev/null || true
}

setup() {
	load ../common
	load ../campaign
	WS=$BATS_TEST_TMPDIR/ws
	sed 's/resources = {/resources = { mem_gib_per_node = 0.2,/' "$RECIPE" >"$BATS_TEST_TMPDIR/small.lua"
	mkdir "$BATS_TEST_TMPDIR/bin"
}

teardown() {
	end_all_jobs
	cluster wait
}

# A shell command that wants more than there is, and whose end by the kernel the shell survives.
HOG='head -c 900000000 /dev/zero | tail -c 800000000 >/dev/null'

@test "the job runs out of memory: lost, told, run again" {
	printf '#!/bin/sh\ncase $1 in */1.1) %s || exit 1 ;; esac\nexec "%s" "$@"\n' "$HOG" "$BUILD/fettle-agent" \
		>"$BATS_TEST_TMPDIR/bin/fettle-agent"
	chmod +x "$BATS_TEST_TMPDIR/bin/fettle-agent"
	FETTLE_AGENT=$BATS_TEST_TMPDIR/bin/fettle-agent start_campaign "$BATS_TEST_TMPDIR/small.lua"
	finish_campaign
	[ "$(first_end)" = oom ]
	[ "$(sql "SELECT group_concat(state) FROM attempt WHERE block = 1")" = lost,valid ]
	report "$WS" | jq -e '.faults | length == 1'
}

@test "the workload of one arm runs out of memory: its own failure, and the block counts, whatever Slurm says" {
	printf '#!/bin/sh\ncase "$*" in *--slow*) %s || exit 137 ;; esac\nexec "%s" "$@"\n' "$HOG" "$(command -v planted)" \
		>"$BATS_TEST_TMPDIR/bin/planted"
	chmod +x "$BATS_TEST_TMPDIR/bin/planted"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH
	run "$FETTLE" run -q -w "$WS" "$BATS_TEST_TMPDIR/small.lua"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"Fix: fast=true: validated"* ]]
	[ "$(sql "SELECT count(*) FROM attempt WHERE state <> 'valid'")" = 0 ]
	[ "$(sql "SELECT count(DISTINCT arm_label) FROM v_trial WHERE state = 'failed'")" = 1 ]
	[[ $(sql "SELECT DISTINCT arm_label FROM v_trial WHERE state = 'failed'") == *slow* ]]
}
