#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# ingest.sh : what the results of many trials cost: 10,000 of them (LONG=1: 100,000) with 101 values
# each go through a whole campaign on scheduler fake. It leaves the files that an agent would have
# left; the orchestrator reads them, stores them in the database and decides. CPU time includes the
# making of these files. Fails when memory passes 64 MiB or grows by more than a row a trial, when a trial costs
# more at the end of many than of few, or when there are more commits than a few a block.
set -eu
cd "$(dirname "$0")/../.."
MAX_KIB=65536
MAX_GROWTH_KIB=24576 # between the runs of FEW and of all blocks: the JSON report has a line a trial, as a tree and as one text
MAX_CPU_GROWTH=1.5   # CPU time of a trial, likewise: what else the machine does is in it
MAX_SYNCS=10         # of the database, a block
METRICS=9            # of 8 statistics each, beside the 29 values that every trial has
PER_BLOCK=100
FEW=20
blocks=${LONG:+1000}
blocks=${blocks:-100}
. tests/bench/lib.sh
scratch ingest
failed=0

require() { # WHAT VALUE LIMIT
	awk -v a="$2" -v b="$3" 'BEGIN { exit !(a <= b) }' || {
		echo "  FAILED: $1 is $2, more than $3"
		failed=1
	}
}
# campaign BLOCKS [WITH...] : the command's line of figures is the last of $dir/err
campaign() {
	n=$1
	shift
	sed "s/aa = 1000/aa = $n/" tests/bench/ingest.lua >"$dir/ingest.lua"
	rm -rf "$dir/workspace"
	"$@" "$build/fettle" run --fake "$dir/truth.json" -w "$dir/workspace" "$dir/ingest.lua" >"$dir/out" 2>"$dir/err" || {
		cat "$dir/out" "$dir/err" >&2
		exit 1
	}
}
count() { sqlite3 -readonly "$dir/workspace/fettle.db" "SELECT count(*) FROM $1"; }

# measure BLOCKS : sets cpu_us (of a trial) and kib
measure() {
	campaign "$1" "$build/tests/bench/probe_bench" run
	trials=$(count trial)
	[ "$trials" -eq $(($1 * PER_BLOCK)) ] || {
		echo "$trials trials were stored, not $(($1 * PER_BLOCK))"
		exit 1
	}
	wall_us=$(tail -n 1 "$dir/err" | awk -v n="$trials" '{ printf "%.0f", $1 * 1e6 / n }')
	cpu_us=$(tail -n 1 "$dir/err" | awk -v n="$trials" '{ printf "%.0f", ($2 + $3) * 1e6 / n }')
	kib=$(tail -n 1 "$dir/err" | cut -d' ' -f4)
	row "$trials trials of 101 values, CPU of each" ms "$(awk -v us="$cpu_us" 'BEGIN { print us / 1000 }')" "" "" 'fettle<=2'
	row "the same, memory" MiB "$((kib / 1024))" "" "" 'fettle<=64'
	echo "$trials trials, $(count metric) values: $cpu_us us CPU and $wall_us us wall a trial, at most $((kib / 1024)) MiB of memory"
}

jq -n --argjson n "$METRICS" '{metrics: ([range($n) | {"bench_metric_\(.)": (100 + .)}] | add)}' >"$dir/truth.json"
measure "$FEW"
few_us=$cpu_us few_kib=$kib
measure "$blocks"
require "memory (KiB)" "$kib" $MAX_KIB
require "growth of memory (KiB)" $((kib - few_kib)) $MAX_GROWTH_KIB
require "CPU time of a trial over that of few" "$(awk -v a="$cpu_us" -v b="$few_us" 'BEGIN { print a / b }')" $MAX_CPU_GROWTH

# SQLite syncs its files with fdatasync; what is written beside it goes to the disk with fsync.
if command -v strace >/dev/null; then
	campaign "$FEW" strace -f -c -e trace=fdatasync -o "$dir/calls"
	syncs=$(awk -v n="$FEW" '$NF == "fdatasync" { printf "%.1f", $4 / n }' "$dir/calls")
	echo "$syncs syncs of the database a block of $PER_BLOCK trials"
	require "syncs a block" "$syncs" $MAX_SYNCS
fi
exit $failed
