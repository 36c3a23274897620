#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# bench.sh [NAME] : `make bench`: the benchmarks one after the other, or one of them, and one table of all rows at the end. Each row is
# fettle against its peer, in turn in the same run; absent peers are said to be absent. LONG=1: the sizes
# and the benchmarks that take long. What the benchmarks say is in build/bench/NAME.log, the rows are
# in build/bench/results.jsonl, the table in build/bench/bench.md. Fails when a benchmark does; a
# missed goal is a row that says so.
cd "$(dirname "$0")/../.." || exit 4
build=${FETTLE_BUILD:-$PWD/build/release}
out=${build%/*}/bench
names="start trial readers trend changepoints probes ingest"
[ -z "${LONG:-}" ] || names="$names slurm_peers overhead pilots efficiency"
names=${1:-$names}
mkdir -p "$out"
BENCH_RESULTS=$out/results.jsonl
export BENCH_RESULTS
if [ -z "${LONG:-}" ]; then
	export TRACE_MB=50 LOG_MB=50 REPS=2 SPEED_ONLY=1
fi
export ROUNDS="${ROUNDS:-${LONG:+3}}"
: >"$BENCH_RESULTS"
failed=
sh tests/bench/peers.sh >"$out/peers.log" 2>&1
for name in $names; do
	from=$(date +%s)
	printf '%s...' "$name"
	shell="sh"
	case $(head -n 1 "tests/bench/$name.sh") in *bash) shell="bash" ;; esac
	if "$shell" "tests/bench/$name.sh" >"$out/$name.log" 2>&1; then
		echo " $(($(date +%s) - from)) s"
	else
		echo " $(($(date +%s) - from)) s: failed"
		failed="$failed $name"
	fi
done
{
	echo "# fettle beside its peers"
	echo
	echo "Made by \`${LONG:+LONG=1 }make bench${1:+ T=$1}\` with $("$build/fettle" --version | head -n 1), $(date -u +%Y-%m-%dT%H:%MZ), on $(nproc) processors"
	echo "($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(uname -sr), load $(cut -d' ' -f1 /proc/loadavg) at the end). Median [least, most] of the rounds; fettle and its peer"
	echo "take turns, and a ratio is peer / fettle of one round: what else the machine does moves both."
	echo
	echo "| bench | what | unit | fettle | peer | which | peer / fettle | goal | |"
	echo "|---|---|---|---|---|---|---|---|---|"
	jq -r -f tests/bench/row.jq "$BENCH_RESULTS"
	[ -z "$failed" ] || printf '\nFailed, or missed a goal of their own (the end of build/bench/NAME.log says which):%s\n' "$failed"
} >"$out/bench.md"
cat "$out/bench.md"
[ -z "$failed" ]
