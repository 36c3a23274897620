#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Another Slurm than this machine's: that of Debian 13 (24.11), in a root of its own. Needs root, debootstrap and a
# Debian mirror (about 1 GB and five minutes the first time; the root is kept).
#
# Or another Debian: FETTLE_SUITE=bullseye.
#
#   trixie.sh make ROOT            make the root with what build and Slurm tests need, unless it is there
#   trixie.sh run ROOT COMMAND...  run COMMAND there, in these sources, with mounts and processes of its own, and without
#                                  name servers: slurmctld looks its clients' addresses up, for as long as DNS takes
set -eu
MIRROR=${FETTLE_MIRROR:-http://deb.debian.org/debian}
SUITE=${FETTLE_SUITE:-trixie}
here=$(cd "$(dirname "$0")/../.." && pwd)
packages="$(sh "$here/tests/lint/deps.sh" packages build slurm | tr '\n' ' ')bats file jq libcmocka-dev libopenblas-dev make perl procps slurm-wlm-basic-plugins sqlite3 tzdata util-linux"
readonly MIRROR SUITE packages here

# A root that is kept gets what the list has since then.
make_root() {
	local root=$1
	[ "$(cat "$root/made" 2>/dev/null)" != "$packages" ] || return 0
	[ -e "$root/made" ] || bootstrap "$root"
	cp /etc/resolv.conf /etc/hosts "$root/etc/"
	run_in "$root" apt-get -qq update
	# shellcheck disable=SC2086 # a list
	run_in "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $packages
	echo "$packages" >"$root/made"
}

bootstrap() {
	local root=$1
	command -v debootstrap >/dev/null || { echo "trixie.sh: debootstrap is missing: apt-get install debootstrap" >&2; exit 1; }
	rm -rf "$root"
	mkdir -p "${root%/*}"
	debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$root" "$MIRROR"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no daemon starts by itself
	chmod 755 "$root/usr/sbin/policy-rc.d"
}

# Names come from a hosts file of three lines; no name server is asked (the resolver's own default is this machine).
no_dns() {
	local root=$1
	printf '127.0.0.1 localhost %s\n' "$(hostname -s)" >"$root/etc/hosts"
	: >"$root/etc/resolv.conf"
}

run_in() {
	local root=$1
	shift
	# shellcheck disable=SC2016 # for the inner shell
	ROOT=$root HERE=$here unshare --mount --pid --fork --kill-child --propagation private bash -c '
		set -e
		mount --rbind /dev "$ROOT/dev"
		mount --rbind /sys "$ROOT/sys"
		mount -t proc proc "$ROOT/proc"
		mkdir -p "$ROOT$HERE"
		mount --rbind "$HERE" "$ROOT$HERE"
		# not as process 1, which every orphan there is a child of
		chroot "$ROOT" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			HOME=/root LANG=C.UTF-8 LONG= /bin/bash -c "cd \"\$0\" && exec \"\$@\"" "$HERE" "$@" || exit $?' sh "$@"
}

[ $# -ge 2 ] || { sed -n '4,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command=$1
root=$2
shift 2
case $command in
make) make_root "$root" ;;
run) no_dns "$root"; run_in "$root" "$@" ;;
*) echo "trixie.sh: unknown command '$command'" >&2; exit 2 ;;
esac
