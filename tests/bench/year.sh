#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# year.sh: years of nights over 200 series through the real database (tests/unit/year.h says what happens in
# them). Markdown on stdout: this is experiments/reports/year-of-nights.md, whole.
#
#   sh tests/bench/year.sh [SEEDS] >experiments/reports/year-of-nights.md      (default 41-50; a year takes about 20 s)
#
# Fails when a year misses its bounds: all planted changes confirmed within 4 nights, at most 2 false confirmations,
# the right cause first for 10 of 12, the database below 100 MB, the regressions listed within 100 ms. ROWS=FILE:
# rows that were made before (what goes to stdout for FETTLE_YEARS=SEEDS), which are judged and not made again.
set -eu
cd "$(dirname "$0")/../.."
seeds=${1:-41-50}
rows=${ROWS:-}
if [ -z "$rows" ]; then
	rows=$(mktemp)
	trap 'rm -f "$rows"' EXIT
	FETTLE_YEARS=$seeds "${FETTLE_BUILD:-build/release}/tests/unit/track_year_test" >"$rows"
fi
cat <<'TEXT'
# A year of nights
200 series: 40 canaries in 4 partitions (objective, reference, pairs and a clock each, two blocks a night), 24 imported
histories and 16 observed series. Noise of a night's point 1 %, a slow drift of up to 3 % a year and a random walk beside it,
0.5 % of trials and 0.3 % of nights 8 to 28 % slow, 4 % of points missing, two maintenances of 3 nights, three nodes that are 10 %
slow for 5 nights. Twelve changes of 5 % (ten for the worse) follow a key of the environment: a driver, firmware, kernel, BIOS or
Slurm for two thirds of those that it concerns, or the container, commit, torch, NCCL or OMP_NUM_THREADS of one workload. Beside each
of them other keys change the same night for everybody, for the same workload, or a night or two away, and every key also
changes on nights without a reason (a commit 20 times a year). Re-runs are answered as a cluster would: paired where a key can be set
back, else alone and on another night. Every other confirmed change is accepted after ten nights, the others acknowledged.

A change **can be told apart** when no other key changed for the same series between the same two nights on which each of them ran, or a
re-run can set one of the two back. Of the others (both firmware and driver in one maintenance; torch and OMP_NUM_THREADS of an imported
history the same night) nothing measured says which it was: what ranks them is how often each changed before without a consequence, and the
planted ones are mostly those that change more often. So 10 of 12 is out of reach in a year that has fewer of the first kind and no luck
with the second: seed 36 has 7.

The rules were worked out on seeds 1 to 5, 17 and 21 to 40; these are others, played once. Made by `sh tests/bench/year.sh` (`FETTLE_YEARS=41 track_year_test`
is one year; stderr names what went wrong, with what was believed of which key). The times are of two cores that fifteen programs shared. On seeds 31 to 40, which they
were worked out on: 119 of 120 confirmed in time, 0.6 false a year, the right cause first for 108, and for 85 of the 87 that can be told apart.

| seed | confirmed within 4 nights | slowest, nights | false confirmations | right cause first | of those that can be told apart | suspected | of those gone by themselves | dismissed by a re-run | re-runs | their GPU-hours | canaries' GPU-hours | track_night and track_wanted, ms a night | slowest night, ms | all judging, s | database, MiB | list of regressions, ms |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
TEXT
grep '^| [0-9]' "$rows"
awk -F'|' '/^\| [0-9]/ {
	split($3, c, " of "); split($6, b, " of "); split($7, d, " of ")
	n++; found += c[1]; planted += c[2]; wrong += $5; right += b[1]; reruns += $11; gpu += $12; canary += $13
	apart += d[2]; apart_right += d[1]
	if (c[1] + 0 < c[2] + 0 || $5 > 2 || b[1] < 10 || $17 >= 95 || $18 >= 100) bad = bad " " $2 + 0
}
END {
	printf "\n%d years: %d of %d changes confirmed in time, %.1f false confirmations a year, the right cause first for %d. Of %d that\n", n, found, planted, wrong / n, right, apart
	printf "can be told apart (%.0f %%) it is first for %d, of the %d others for %d. %.0f re-runs a year\n", 100 * apart / planted, apart_right, planted - apart, right - apart_right, reruns / n
	printf "take %.0f GPU-hours, %.1f %% of what the canaries take (8 GPUs, trials of 5 minutes).\n", gpu / n, 100 * gpu / canary
	printf "Bounds (all in time, at most 2 false, 10 of 12 causes, 100 MB, 100 ms) missed by seeds:%s\n", bad ? bad : " none"
	exit bad != ""
}' "$rows"
