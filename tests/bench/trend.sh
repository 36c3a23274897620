#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# trend.sh : looks at a year of nights of 200 series: `fettle history` and `fettle regressions` on a database of tests/bench/nights,
# against ReFrame's results database, of as many sessions and test cases as ReFrame itself stores them: last night beside the
# year. CPU and wall time with the start of the program, ROUNDS (2; of fettle five in each) in turn.
set -eu
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
scratch trend
top=$PWD series=200 nights=365 rounds=${ROUNDS:-2}
peer=$(version reframe-hpc)
reframe=$(bin reframe-hpc)/reframe
export RFM_SQLITE_DB_FILE="$dir/results.db" RFM_ENABLE_RESULTS_STORAGE=1 RFM_PREFIX="$dir/prefix" RFM_REMOTE_DETECT=0
last='now-1d:now/now-365d:now-1d/mean:/'

"$build/tests/bench/nights" "$dir/ws" $series $nights
if [ -x "$reframe" ]; then
	"$reframe" -c "$top/tests/bench/reframe_year.py" -r --report-file="$dir/report.json" >"$dir/reframe.txt" 2>&1 || {
		tail -n 20 "$dir/reframe.txt"
		exit 1
	}
	"${reframe%/*}/python" tests/bench/reframe_year.py "$dir/results.db" $series $nights
fi
# the quickest of five looks, as a line of $dir/NAME
look() { # NAME ARG...
	name=$1
	shift
	for _ in 1 2 3 4 5; do # 1: a regression is open
		timed "$name.all" sh -c '"$@" || [ $? = 1 ]' sh "$fettle" "$@" -w "$dir/ws"
	done
	sort -g "$dir/$name.all" | head -n 1 >>"$dir/$name"
	rm "$dir/$name.all"
}
query() { # NAME ARG...
	[ -x "$reframe" ] || return 0
	timed "$@"
	grep -q bench_ "$dir/$1.out" || { echo "ReFrame found nothing" >&2; exit 1; }
}
for _ in $(seq "$rounds"); do
	look list history
	query all "$reframe" --performance-compare="$last"
	look one history 1
	query named "$reframe" --performance-compare="$last" -n 'bench_7$'
	look open regressions
done
of() { if [ -e "$dir/$2" ]; then "$1" "$2"; fi; }
row "a year of 200 series: the list of them (last night beside the year)" ms "$(wall_ms list)" "$(of wall_ms all)" "$peer" 'fettle<=50'
row "the same, CPU" ms "$(cpu_ms list)" "$(of cpu_ms all)" "$peer"
row "the same, memory" MiB "$(mib list)" "$(of mib all)" "$peer" 'fettle<=64'
row "one series of them" ms "$(wall_ms one)" "$(of wall_ms named)" "$peer" 'fettle<=50'
row "what became worse" ms "$(wall_ms open)" "$(of wall_ms all)" "$peer" 'fettle<=50'
row "the database" MiB "$(stat -c %s "$dir/ws/fettle.db" | awk '{ print $1 / 1048576 }')" \
	"$(stat -c %s "$dir/results.db" 2>/dev/null | awk '{ print $1 / 1048576 }')" "$peer" 'fettle<=100'
