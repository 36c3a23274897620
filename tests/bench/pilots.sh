#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# pilots.sh : single-node blocks of about a second on a Slurm cluster of four virtual nodes that it starts itself:
# a timeline of the nodes, their idle share from the first to the last job's end but for the last of each node, memory
# and CPU time of fettle. BLOCKS=N (200; LONG=1: 1,000) blocks, EACH=K (25; 50) of them a job. Fails at 10 % idle.
set -eu
cd "$(dirname "$0")/../.."
MAX_IDLE=10 # percent
if [ -n "${LONG:-}" ]; then blocks=${BLOCKS:-1000} each=${EACH:-50}; else blocks=${BLOCKS:-200} each=${EACH:-25}; fi
build=${FETTLE_BUILD:-$PWD/build/release}
cluster=$PWD/tests/slurm/cluster.sh
dir=$(mktemp -d /tmp/fettle-pilots-XXXXXX) # short: the path of a munge socket has room for about 100 bytes
trap '"$cluster" stop "$dir/c" >/dev/null 2>&1; rm -rf "$dir"' EXIT INT TERM

"$cluster" start "$dir/c" >/dev/null
eval "$("$cluster" env "$dir/c")"
sed -e "s/aa = 1000/aa = $blocks/" -e "s/blocks_per_allocation = 50/blocks_per_allocation = $each/" \
	tests/bench/pilots.lua >"$dir/pilots.lua"
/usr/bin/time -f '%M %U %S' -o "$dir/time" "$build/fettle" run -w "$dir/ws" "$dir/pilots.lua" >"$dir/out" 2>&1 || {
	tail -n 40 "$dir/out"
	exit 1
}

# node, start and end of each trial, in seconds from the first one
sqlite3 -separator ' ' "$dir/ws/fettle.db" "SELECT node, (start_us - (SELECT min(start_us) FROM trial)) / 1e6,
	(start_us + wall_us - (SELECT min(start_us) FROM trial)) / 1e6 FROM trial ORDER BY node, start_us" >"$dir/trials"
jobs=$(sqlite3 "$dir/ws/fettle.db" 'SELECT count(*) FROM allocation')
read -r rss_kib user_s system_s <"$dir/time"
awk -v max=$MAX_IDLE -v blocks="$blocks" -v jobs="$jobs" -v rss="$rss_kib" -v cpu_s="$(echo "$user_s $system_s" | awk '{ print $1 + $2 }')" '
	BEGIN { width = 100 }
	{ n++; node[n] = $1; from[n] = $2; to[n] = $3; if (!($1 in last)) { names[++nodes] = $1; first[$1] = $2 }
	  last[$1] = $3; busy[$1] += $3 - $2; if ($3 > end) end = $3 }
	END {
		printf "%d blocks in %d jobs on %d nodes, %.0f s; one character is %.1f s, # is busy\n", blocks, jobs, nodes, end, end / width
		for (k = 1; k <= nodes; k++) {
			for (c = 0; c < width; c++) cell[c] = 0
			for (i = 1; i <= n; i++) if (node[i] == names[k])
				for (c = int(from[i] * width / end); c <= int(to[i] * width / end) && c < width; c++) {
					a = c * end / width; b = a + end / width
					cell[c] += (to[i] < b ? to[i] : b) - (from[i] > a ? from[i] : a)
				}
			line = ""
			for (c = 0; c < width; c++) { x = cell[c] * width / end; line = line (x > 0.75 ? "#" : x > 0.25 ? "+" : x > 0 ? "." : " ") }
			printf "%-4s |%s|\n", names[k], line
			used += busy[names[k]]; had += last[names[k]] - first[names[k]]
		}
		idle = 100 * (1 - used / had)
		printf "idle %.1f %% of the time of the nodes (at most %d %%); fettle: %.1f MiB, %.1f ms of CPU a block\n", idle, max, rss / 1024,
			1000 * cpu_s / blocks
		exit nodes != 4 || idle > max
	}' "$dir/trials"
