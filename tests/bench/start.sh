#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# start.sh : the start of the program and its memory: --version of fettle, Optuna and ReFrame, ROUNDS (7) times in turn.
set -eu
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
scratch start
for round in $(seq "${ROUNDS:-7}"); do
	timed fettle "$fettle" --version
	for peer in optuna reframe; do
		name=$peer
		[ $peer = optuna ] || name=reframe-hpc
		[ "$round" -gt 1 ] || version $name >"$dir/$peer.version"
		[ -z "$(bin $name)" ] || timed $peer "$(bin $name)/$peer" --version
	done
done
for peer in optuna reframe; do
	named=$(cat "$dir/$peer.version")
	if [ ! -e "$dir/$peer" ]; then : >"$dir/$peer"; fi
	row "start (--version), wall" ms "$(wall_ms fettle)" "$(wall_ms $peer)" "$named"
	row "start (--version), memory" MiB "$(mib fettle)" "$(mib $peer)" "$named" 'fettle<=64'
done
