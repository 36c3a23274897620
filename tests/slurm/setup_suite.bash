# SPDX-License-Identifier: GPL-2.0-or-later
# One cluster for all files of a `bats` call. Not in BATS_SUITE_TMPDIR: the path of a munge socket has
# room for about 100 bytes.
setup_suite() {
	local here
	here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
	FETTLE_CLUSTER_BASE=$(mktemp -d /tmp/fettle-slurm-XXXXXX)
	export FETTLE_CLUSTER_BASE
	FETTLE_CLUSTER_OWNER=$$ "$here/cluster.sh" start "$FETTLE_CLUSTER_BASE/c" MessageTimeout=5
	eval "$("$here/cluster.sh" env "$FETTLE_CLUSTER_BASE/c")"
}

teardown_suite() {
	"$(dirname "${BASH_SOURCE[0]}")/cluster.sh" stop "$FETTLE_CLUSTER_BASE/c"
	rm -rf "$FETTLE_CLUSTER_BASE"
}
