#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The Debian packages of HEAD: built, looked at by lintian, installed into a root of their own,
# used there, removed without rest; the RPM spec builds. LONG=1, as root.

setup_file() {
	cd "$BATS_TEST_DIRNAME/../../.." || return 1
	export TOP=$PWD
}

# In an environment without make's own variables: this is not part of the run that started the tests.
quiet_make() {
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u MODE -u BUILD make -s -C "$TOP" "$@"
}

@test "make deb: two packages, no errors or warnings of lintian" {
	quiet_make deb DEB_MAINTAINER='A Packager <packager@debian.org>' DEB_FLAGS='-b -j2' >"$BATS_FILE_TMPDIR/deb.log" 2>&1 || { tail -n 20 "$BATS_FILE_TMPDIR/deb.log"; return 1; }
	cd "$TOP/build/deb"
	[ "$(find . -maxdepth 1 -name 'fettle*_amd64.deb' ! -name '*dbgsym*' | wc -l)" -eq 2 ]
	dpkg-deb -I fettle-slurm_*.deb | grep -q 'Depends: fettle (= .*libslurm'
	lintian --fail-on error,warning ./*.changes
}

# dpkg with a root and a list of packages of its own; what they depend on is this machine's.
dpkg_there() {
	dpkg --instdir="$BATS_FILE_TMPDIR/root" --admindir="$BATS_FILE_TMPDIR/admin" --force-depends --no-triggers "$@"
}

@test "installed it works, and removed it leaves nothing" {
	root=$BATS_FILE_TMPDIR/root
	mkdir -p "$root" "$BATS_FILE_TMPDIR/admin/info" "$BATS_FILE_TMPDIR/admin/updates"
	touch "$BATS_FILE_TMPDIR/admin/status"
	cd "$TOP/build/deb"
	dpkg_there -i fettle_*_amd64.deb fettle-slurm_*_amd64.deb
	run "$root/usr/bin/fettle" --version
	[ "$status" -eq 0 ]
	printf 'return { name = "c", objective = "trial_wall_s", workload = { command = { "true" } }, knobs = { "jemalloc" } }\n' >c.lua
	run "$root/usr/bin/fettle" check c.lua
	echo "$output"
	[ "$status" -eq 0 ]
	"$root/usr/bin/fettle" doctor | grep -qE "^ok +fettle-slurm +$root/usr/libexec/fettle/fettle-slurm"
	[ -r "$root/usr/share/man/man1/fettle.1.gz" ]
	[ "$(stat -c %s "$root/usr/libexec/fettle/fettle-agent")" -lt 2000000 ]
	dpkg_there --purge fettle-slurm fettle
	[ -z "$(find "$root" ! -type d)" ]
}

@test "make rpm: the spec builds" {
	quiet_make rpm RPM_FLAGS=--nodeps >"$BATS_FILE_TMPDIR/rpm.log" 2>&1 || { tail -n 20 "$BATS_FILE_TMPDIR/rpm.log"; return 1; }
	[ "$(find "$TOP/build/rpm/RPMS" -name 'fettle*.rpm' ! -name '*debug*' | wc -l)" -eq 2 ]
}
