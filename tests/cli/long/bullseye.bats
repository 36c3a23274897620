#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The same sources on an older Debian (11: glibc 2.31, gcc 10, SQLite 3.34), the nearest to a login node
# of RHEL 8 or 9 that can be had here: built, installed without root's places, and used. LONG=1, as root;
# $FETTLE_BULLSEYE: where the root is kept. Its bats is too old for our tests, so these are typed out.

setup_file() {
	export FETTLE_SUITE=bullseye TOP=$BATS_TEST_DIRNAME/../../..
	export ROOT=${FETTLE_BULLSEYE:-${BUILD%/*}/bullseye-root} OLD=$TOP/tests/slurm/trixie.sh
	cd "$TOP" || return 1
	"$OLD" make "$ROOT" >"$BATS_FILE_TMPDIR/made" 2>&1 || { tail -n 5 "$BATS_FILE_TMPDIR/made"; return 1; }
	there make -s -j2 BUILD=build/bullseye programs build/bullseye/release/tests/unit/{db,fs,script,paths,proc}_test \
		>"$BATS_FILE_TMPDIR/made" 2>&1 || { tail -n 20 "$BATS_FILE_TMPDIR/made"; return 1; }
}

there() {
	"$OLD" run "$ROOT" "$@"
}

@test "units pass there" {
	for t in db fs script paths proc; do
		there env FETTLE_BUILD=build/bullseye/release "build/bullseye/release/tests/unit/${t}_test"
	done
}

@test "installed under a prefix of its user's, it checks, runs and reports a campaign; its agent is static and below 2 MB" {
	# shellcheck disable=SC2016 # for the inner shell
	there bash -c 'set -e
		rm -rf /tmp/x /tmp/ws
		make -s BUILD=build/bullseye install PREFIX=/tmp/x
		[ "$(stat -c %s /tmp/x/libexec/fettle/fettle-agent)" -lt 2000000 ]
		file /tmp/x/libexec/fettle/fettle-agent | grep -q "statically linked"
		cd /tmp
		printf "return { name = \"c\", objective = \"trial_wall_s\", mode = \"quick\", workload = { command = { \"true\" } } }\n" >c.lua
		x/bin/fettle --version
		x/bin/fettle doctor
		x/bin/fettle check c.lua
		x/bin/fettle run c.lua -q -w ws
		x/bin/fettle report -w ws | grep -q "^Campaign 1, done"
		x/bin/fettle complete -- rep | grep -q "^report"'
}
