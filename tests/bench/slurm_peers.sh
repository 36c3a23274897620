#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# slurm_peers.sh : N (100) no-op trials on one Slurm cluster of four virtual nodes that it starts itself: fettle with one
# block (two trials) a job and with pilots, a bare libslurm loop, a loop of sbatch, a job array of submitit, and ReFrame.
# Each is run ROUNDS (3) times, in turn; the table has medians and the range, and ratios that are taken within a round.
# Every job has its node to itself. fettle's trials are judged, recorded in SQLite and reported; the peers record what
# they do by themselves, the two loops nothing. ONLY="fettle pilots loop sbatch submitit reframe" runs some of them.
# Peers come from PyPI (peers.sh). Fails when a goal is missed; what else the machine does
# moves all rows, so look at the ratios.
set -u
cd "$(dirname "$0")/../.." || exit 1
REFRAME=$(sh tests/bench/peers.sh reframe-hpc | head -n 1)
SUBMITIT=$(sh tests/bench/peers.sh submitit | head -n 1)
n=${N:-100} rounds=${ROUNDS:-3}
read -ra names <<<"${ONLY:-loop fettle pilots sbatch submitit reframe}"
build=${FETTLE_BUILD:-$PWD/build/release}
cluster=$PWD/tests/slurm/cluster.sh
here=$PWD/tests/bench/slurm_peers
venv=${build%/*}/bench-venv
. tests/bench/lib.sh
dir=$(mktemp -d /tmp/fettle-peers-XXXXXX) # short: the path of a munge socket has room for about 100 bytes
trap '"$cluster" stop "$dir/c" >/dev/null 2>&1; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM HUP

# --- the peers: each runs n trials, or n blocks, and is the only thing that is timed -----------------
recipe() { # recipe BLOCKS EACH : a campaign of so many blocks, so many of them a job
	sed -e "s/aa = 1000/aa = $1/" -e "s/blocks_per_allocation = 50/blocks_per_allocation = $2/" "$here/fettle.lua" >"$dir/fettle.lua"
}
run_fettle() { "$build/fettle" run -w "$work/ws" "$dir/fettle.lua"; }
run_pilots() { run_fettle; }
run_loop() { "$dir/loop" "$n" "bench-$round" /bin/true; }
run_sbatch() {
	local i
	for ((i = 0; i < n; i++)); do
		sbatch --parsable --exclusive -t 1 -o /dev/null -J "bench-$round" --wrap /bin/true || return 1
	done
	while [ -n "$(squeue -h -n "bench-$round")" ]; do sleep 0.5; done
}
run_submitit() { "$venv/bin/python" "$here/submitit_array.py" "$work" "$n" /bin/true; }
run_reframe() {
	BENCH_N=$n "$venv/bin/reframe" -C "$here/reframe_site.py" -c "$here/reframe_test.py" --prefix "$work" -r
}

# What is missing for a peer; nothing when it can run.
absent() {
	case $1 in
	fettle | pilots) [ -x "$build/fettle-slurm" ] || echo "fettle-slurm is not built" ;;
	loop) [ -x "$dir/loop" ] || echo "slurm/slurm.h is missing" ;;
	submitit) [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import submitit' 2>/dev/null || echo "$SUBMITIT cannot be installed from PyPI" ;;
	reframe) [ -x "$venv/bin/reframe" ] || echo "$REFRAME cannot be installed from PyPI" ;;
	esac
}

what() {
	case $1 in
	fettle) echo "fettle, $n jobs of a block each" ;;
	pilots) echo "fettle, pilots" ;;
	loop) echo "libslurm loop" ;;
	sbatch) echo "sbatch loop" ;;
	submitit) echo "$SUBMITIT array" ;;
	reframe) echo "$REFRAME (squeue)" ;;
	esac
}

# Requests of the client by slurmctld's own count: not those of nodes, of jobs, or of this look.
rpcs() {
	sdiag | awk '/statistics by message type/ { on = 1; next } /statistics by user/ { on = 0 }
		on && /count:/ && !/MESSAGE_|COMPLETE|REQUEST_STATS|_STEP_|NODE_REGISTRATION/ { sub(/.*count:/, ""); sum += $1 } END { print sum + 0 }'
}

fail() {
	echo "slurm_peers: $1 failed in round $round" >&2
	tail -n 20 "$dir/out" >&2
	exit 1
}

# fettle's own count of what it has on record: trials that are valid.
recorded() {
	sqlite3 "$work/ws/fettle.db" "SELECT count(*) FROM trial t JOIN attempt a ON a.id = t.attempt WHERE a.state = 'valid' AND t.state = 'ok'"
}

measure() { # measure NAME : a line of $dir/results
	local name=$1 begin trials=$n jobs=$n
	work=$dir/work
	mkdir "$work"
	case $name in
	fettle) recipe "$n" 1 trials=$((2 * n)) ;;
	pilots) recipe $((n / 2)) $(((n / 2 + 3) / 4)) ;; # as many jobs as nodes
	esac
	"$cluster" wait "$dir/c"
	sdiag -r >/dev/null
	begin=$EPOCHREALTIME
	( cd "$work" && "run_$name" >"$dir/out" 2>&1 && times >"$dir/times" ) || fail "$name"
	wall=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
	case $name in
	fettle | pilots)
		[ "$name" = pilots ] || trials=$((2 * n))
		[ "$(recorded)" = "$trials" ] || fail "$name ($(recorded) of $trials trials on record)"
		jobs=$(sqlite3 "$work/ws/fettle.db" 'SELECT count(*) FROM allocation')
		;;
	esac
	awk -v name="$name" -v round="$round" -v wall="$wall" -v trials="$trials" -v jobs="$jobs" -v rpcs="$(rpcs)" '
		{ for (i = 1; i <= NF; i++) { split($i, t, /[ms]/); cpu += t[1] * 60 + t[2] } } # of the shell and of its children
		END { print name, round, wall, cpu, trials, jobs, rpcs }' "$dir/times" >>"$dir/results"
	rm -rf "$work"
}

# --- what is needed ------------------------------------------------------------------------------------
cc -std=c17 -D_GNU_SOURCE -O2 -I. -o "$dir/loop" "$here/loop.c" -lslurm 2>"$dir/cc"
"$cluster" start "$dir/c" || exit 1
eval "$("$cluster" env "$dir/c")"

for ((round = 1; round <= rounds; round++)); do
	for ((k = 0; k < ${#names[@]}; k++)); do # each round begins with another one
		name=${names[$(((k + round - 1) % ${#names[@]}))]}
		[ -n "$(absent "$name")" ] || measure "$name"
	done
done
# Rows of the table of `make bench`: peers beside a block a job, and beside pilots.
beside() { # FETTLE PEER GOAL...
	row "$n no-op trials on Slurm: $(what "$1")" s "$(walls "$1")" "$(walls "$2")" "$(what "$2")" "${@:3}"
}
walls() { awk -v name="$1" '$1 == name { print $3 }' "$dir/results"; }
beside fettle loop 'ratio>=0.769' # a block a job takes at most 1.3 times as long
beside fettle reframe 'ratio>=4'
beside pilots sbatch 'ratio>=5'
beside pilots submitit 'ratio>=5'
beside pilots reframe 'ratio>=5'
for name in "${names[@]}"; do echo "$name|$(what "$name")|$(absent "$name")"; done >"$dir/names"

echo "$n no-op trials (/bin/true) on $(sbatch --version), four nodes of this machine, $rounds rounds: median [lowest, highest]"
awk '
	function sorted(list, v,   n, i, j, t) {
		n = split(list, v, " ")
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
		return n
	}
	function median(list,   v, n) { n = sorted(list, v); return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
	function range(list, f,   v, n) { n = sorted(list, v); return sprintf(f " [" f ", " f "]", median(list), v[1], v[n]) }
	# of wall times, round by round
	function ratio(a, b,   r, list) {
		for (r = 1; r <= rounds; r++)
			if ((a, r) in wall && (b, r) in wall) list = list " " wall[a, r] / wall[b, r]
		return list
	}
	function goal(text, list, limit, most,   m, bad) {
		if (list == "") { printf "%-66s not measured\n", text; return }
		m = median(list)
		bad = most ? m > limit : m < limit
		missed += bad
		printf "%-66s %s: %s\n", text, range(list, "%.2f"), bad ? "MISSED" : "met"
	}
	FILENAME ~ /names$/ { split($0, f, "|"); order[++k] = f[1]; what[f[1]] = f[2]; missing[f[1]] = f[3]; next }
	{ wall[$1, $2] = $3; walls[$1] = walls[$1] " " $3; cpu[$1] = cpu[$1] " " 1000 * $4 / $6; cput[$1] = cput[$1] " " 1000 * $4 / $5
	  trials[$1] = $5; jobs[$1] = $6; rpc[$1] = rpc[$1] " " $7; if ($2 > rounds) rounds = $2 }
	END {
		printf "%-34s %6s %5s  %-21s %-9s %-21s %-9s %s\n", "", "trials", "jobs", "wall, s", "/ loop", "client CPU, ms/trial", "ms/job", "requests"
		for (i = 1; i <= k; i++) {
			c = order[i]
			if (missing[c] != "") { printf "%-34s absent: %s\n", what[c], missing[c]; continue }
			printf "%-34s %6d %5d  %-21s %-9s %-21s %-9.1f %s\n", what[c], trials[c], jobs[c], range(walls[c], "%.1f"),
				ratio(c, "loop") == "" ? "-" : sprintf("%.2f", median(ratio(c, "loop"))), range(cput[c], "%.1f"), median(cpu[c]), range(rpc[c], "%d")
		}
		best = ""
		for (i = 1; i <= k; i++) {
			c = order[i]
			if (c != "fettle" && c != "pilots" && missing[c] == "" && (best == "" || median(walls[c]) < median(walls[best]))) best = c
		}
		print ""
		goal("a block a job / libslurm loop, at most 1.3", ratio("fettle", "loop"), 1.3, 1)
		goal("ReFrame / a block a job, at least 4", ratio("reframe", "fettle"), 4, 0)
		goal("best peer (" what[best] ") / pilots, at least 5", ratio(best, "pilots"), 5, 0)
		goal("client CPU of a block a job, ms a job, below 5", cpu["fettle"], 5, 1)
		goal("client CPU of pilots, ms a trial, below 5", cput["pilots"], 5, 1)
		exit missed > 0
	}' "$dir/names" "$dir/results"
