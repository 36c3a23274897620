#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# without.sh COMMAND... : run COMMAND where slurm.h and libslurm are not installed, as on a machine that has only Slurm's
# commands (they bring a library of their own). Needs root: they are hidden by mounts that only COMMAND sees.
set -eu
# shellcheck disable=SC2016 # for the inner shell
exec unshare --mount --propagation private bash -c '
	set -e
	mount -t tmpfs none /usr/include/slurm
	for f in $(ldconfig -p | sed -n "s/.*libslurm\.so.* => //p") /usr/lib/*/libslurm.so /usr/lib/*/libslurm.a; do
		[ ! -e "$f" ] || mount --bind /dev/null "$f"
	done
	exec "$@"' sh "$@"
