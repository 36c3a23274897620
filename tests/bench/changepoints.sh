#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# changepoints.sh: the change-point core beside Apache Otava: speed, false alarms, nights until a change is seen.
# Markdown on stdout: this is experiments/reports/changepoints.md, whole.
#
#   LONG=1 sh tests/bench/changepoints.sh >experiments/reports/changepoints.md
#
# Without LONG=1 a sketch of 200 series a row. Otava comes from PyPI (peers.sh); where it cannot be installed, its part is
# said to be absent. SPEED_ONLY=1 leaves all but the speed out. Fails when a goal is missed.
cd "$(dirname "$0")/../.." || exit 1
build=${FETTLE_BUILD:-$PWD/build/release}
bench=$build/tests/bench/changepoint_bench
otava=$(sh tests/bench/peers.sh apache-otava | sed -n 2p)
count=${SERIES:-${LONG:+1000}}
count=${count:-200}
seed=${SEED:-20261129}
tmp=$(mktemp -d) || exit 4
trap 'rm -rf "$tmp"' EXIT
bad=0

# goal TEXT VALUE MOST
goal() {
	if awk "BEGIN { exit !($2 <= $3) }"; then
		echo "- $1: $2, at most $3: met"
	else
		echo "- $1: $2, at most $3: **MISSED**"
		bad=1
	fi
}
# column FILE ROW N: field N of the rows that match ROW, largest last (words count as 0).
column() { awk -F ' *[|] *' -v row="$2" -v n="$(($3 + 1))" '$0 ~ row { print $n }' "$1" | sort -g; }

worth() {
cat <<END
# Change points: what they are worth, and what they cost

Made by

    LONG=1 sh tests/bench/changepoints.sh >experiments/reports/changepoints.md

with $("$build/fettle" --version). Noise 2 %. $count series a row, seed $seed. *Otava*: the rule of Apache Otava 0.8 at its defaults
(\`cp_otava\`; that it equals Otava itself is checked below). *Suspect*: the same rule among the newest 365 points. *Confirmed*:
a suspicion, taken to a paired re-run of 3 to 6 blocks (one-sided paired t at each look, alpha 0.05, noise 2 % a run, the
night's truth) the same night, once. *Strict*: \`cp_strict\` alone. An alarm is a change point more than 3 points from
all that the same rule named on earlier nights.

## Nothing changes
One analysis of 100 points, and 81 nights as the series grows from 20 to 100 points: the share of series with an alarm, then
alarms a series over the 81 nights.

END
"$bench" flat "$count" "$seed" | tee "$tmp/flat" || exit 4
echo
goal 'confirmed alarms / those of Otava, the worst row' "$(column "$tmp/flat" '^[|]' 11 | tail -n 1)" 0.2
goal 'strict alarms / those of Otava, the worst row' "$(column "$tmp/flat" '^[|]' 13 | tail -n 1)" 0.2

cat <<END

## A change at night 50
The share of series in which the change is named (within 3 points) by night k after it, and the median night. The last column:
series in which it was suspected later than Otava raised its alarm.

END
"$bench" step "$count" "$seed" | tee "$tmp/step" || exit 4
echo
goal 'series suspected later than Otava, all rows' "$(column "$tmp/step" '[|] suspect [|]' 14 | awk '{ n += $1 } END { print n + 0 }')" 0

cat <<END

## How far back suspicions are taken
Normal noise. A small change needs nights until the rule sees it, and is then no longer among the newest points: looking at
few of them saves re-runs and loses what the rule has to say.

END
"$bench" newest "$count" "$seed" || exit 4
}
[ -n "${SPEED_ONLY:-}" ] || worth

cat <<END

## Speed
END
# shellcheck disable=SC2046 # two words
set -- $("$bench" year 1000 "$seed")
echo
goal "seconds of 1,000 series x 365 nights, suspicions and strict detector" "$1" 2
echo
if [ -n "$otava" ]; then
	"${CC:-cc}" -std=c17 -D_GNU_SOURCE -O2 -fPIC -shared -I. -o "$tmp/changepoint.so" experiments/changepoint.c experiments/stats.c \
		orchestrator/base/mem.c orchestrator/base/rng.c -lRmath -lxxhash -lm || exit 4
	"$otava/python" tests/bench/changepoints_otava.py "$tmp/changepoint.so" "$bench" "$otava/otava" "$seed" "$tmp" || bad=1
else
	echo "Not measured: $(sh tests/bench/peers.sh apache-otava)"
	(. tests/bench/lib.sh && dir=$tmp && row "change points" ms "" "" "$(version apache-otava)" 'ratio>=30')
fi
exit $bad
