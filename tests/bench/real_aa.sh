#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# real_aa.sh: real campaigns on this machine whose truth is known. Knobs that do nothing: how often is one
# accepted? A baseline that computes 3 % too much, and one knob that removes it: how often is it found? First the
# noise is measured and from it r, the runs of an arm in a block, chosen. A sketch of 2 and 1 campaigns, judged by
# nobody; the run that counts takes about 25 minutes of a machine with nothing else to do, and writes
# experiments/reports/real-aa.md:
#
#   LONG=1 sh tests/bench/real_aa.sh
#
# AA=N and DRAG=N say how many of each, CPU=N where the workload is pinned (else the last; fettle itself runs on the
# others), KEEP=DIR where the workspace stays: campaigns that are done there are not run again.
set -eu
cd "$(dirname "$0")/../.."
build=${FETTLE_BUILD:-$PWD/build/release}
fettle=$build/fettle
MAX_FALSE=4        # of 30 campaigns; 1.5 are due at alpha 0.05, and 5 or more come once in 60 times
MIN_FOUND_PCT=90   # of campaigns with the slow-down
MAX_NOISE_PCT=1    # of an arm in a block: above it the second part says nothing
AIM_NOISE_PCT=0.9  # r is chosen for this
if [ -n "${LONG:-}" ]; then
	aa=${AA:-30} drag=${DRAG:-10} max_repeats=6
else
	aa=${AA:-2} drag=${DRAG:-1} max_repeats=1
fi
tmp=$(mktemp -d "$build/real-aa.XXXXXX") # not /tmp: state is fsynced, as it is for users
trap 'rm -rf "$tmp"' EXIT
trap 'exit 3' INT TERM
ws=${KEEP:-$tmp/workspace}
cpus=$(taskset -cp $$ | sed 's/.*: //')
last=$(printf '%s\n' "$cpus" | sed 's/.*[,-]//')
cpu=${CPU:-$last}
# The others, as taskset wants them; the same one when there is only one.
others=$(for c in $(printf '%s\n' "$cpus" | tr ',' ' '); do seq "${c%-*}" "${c#*-}"; done | grep -vx "$cpu" | paste -sd, -)
others=${others:-$cpu}
export PATH="$build/tests/workloads:$PATH"

sql() { sqlite3 -readonly "$ws/fettle.db" "$1"; }
calc() { awk "BEGIN { printf \"$1\", ($2) }"; }
is() { [ "$(calc '%d' "$1 ? 1 : 0")" = 1 ]; }

# campaign KIND I REPEATS: a campaign of its own seed and name, unless it is done.
campaign() {
	if [ -e "$ws/fettle.db" ] &&
		[ "$(sql "SELECT count(*) FROM v_campaign WHERE name = 'real-$1-$2' AND state = 'done'")" -gt 0 ]; then return; fi
	sed -e "s/name = \"real-$1\"/name = \"real-$1-$2\"/" -e "s/\"-c\", \"0\"/\"-c\", \"$cpu\"/" -e "s/repeats = 1,/repeats = $3,/" \
		-e "s/seed = 1,/seed = $((20261129 + $2)),/" "tests/bench/real_$1.lua" >"$tmp/real-$1-$2.lua"
	taskset -c "$others" "$fettle" run -q -w "$ws" "$tmp/real-$1-$2.lua" >"$tmp/log" 2>&1 || {
		cat "$tmp/log" >&2
		return 0 # judged below: it is not done
	}
	sed -n '/^Campaign/p; /^Baseline/p; /^  /p' "$tmp/log" >&2
}
# noise PATTERN: sd within a block of the campaigns whose name is like it, in percent, pooled.
noise() {
	for id in $(sql "SELECT campaign FROM v_campaign WHERE name LIKE '$1'"); do
		"$fettle" report -w "$ws" --json "$id" | jq '.baseline.noise // empty'
	done | awk '{ q += $1 * $1 } END { printf "%.2f", NR ? 100 * sqrt(q / NR) : "nan" }'
}

begin=$(date +%s)
load=$(cut -d' ' -f1 /proc/loadavg)
campaign noise 0 1
first=$(noise real-noise-0)
r=$(calc '%d' "($first / $AIM_NOISE_PCT) ^ 2 + 0.999")
[ "$r" -ge 1 ] || r=1
[ "$r" -le $max_repeats ] || r=$max_repeats
echo "noise of a run $first %: r = $r" >&2
i=0
while [ $((i += 1)) -le "$aa" ]; do campaign aa $i "$r"; done
i=0
while [ $((i += 1)) -le "$drag" ]; do campaign drag $i "$r"; done

false_wins=$(sql "SELECT count(*) FROM v_campaign WHERE name LIKE 'real-aa-%' AND wins > 0")
n_aa=$(sql "SELECT count(*) FROM v_campaign WHERE name LIKE 'real-aa-%' AND state = 'done'")
n_drag=$(sql "SELECT count(*) FROM v_campaign WHERE name LIKE 'real-drag-%' AND state = 'done'")
found=$(sql "SELECT count(DISTINCT campaign) FROM v_experiment JOIN v_campaign USING (campaign)
	WHERE name LIKE 'real-drag-%' AND knob = 'drag' AND outcome = 'accepted'")
wrong=$(sql "SELECT count(DISTINCT campaign) FROM v_experiment JOIN v_campaign USING (campaign)
	WHERE name LIKE 'real-drag-%' AND knob <> 'drag' AND outcome = 'accepted'")
noise_aa=$(noise real-aa-%) noise_drag=$(noise real-drag-%)
bad=0 said_aa=passed said_drag=passed
[ "$false_wins" -le $MAX_FALSE ] && [ "$n_aa" -ge "$aa" ] || said_aa=FAILED bad=1
if ! is "$noise_drag <= $MAX_NOISE_PCT"; then
	said_drag="not judged: the noise is above $MAX_NOISE_PCT %" bad=${LONG:+1}
elif ! is "100 * $found >= $MIN_FOUND_PCT * $drag"; then
	said_drag=FAILED bad=1
fi
outcomes() {
	sql "SELECT '| ' || outcome || ' | ' || count(*) || ' |' FROM v_experiment JOIN v_campaign USING (campaign)
		WHERE name LIKE '$1' GROUP BY outcome ORDER BY count(*) DESC, outcome"
}
percent() { printf "CASE WHEN %s IS NULL THEN 'none' ELSE printf('%%+.2f', 100 * %s) END" "$1" "$1"; }

tee "$tmp/report.md" <<END
# Real campaigns on one machine

Made by \`LONG=1 sh tests/bench/real_aa.sh\` on $(date -u +%Y-%m-%d), in $((($(date +%s) - begin + 30) / 60)) minutes. $("$fettle" --version);
$(nproc) CPUs ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)), Linux $(uname -r), load $load at the start. Scheduler local. The workload is
\`tests/workloads/planted.c --cpu\`: steps of about 5 ms of arithmetic, 40 are measured, the objective is the median
of samples a second. The command pins it to CPU $cpu (\`taskset -c $cpu planted ...\`); fettle and its agent run on
CPU $others.

| | |
|---|---|
| noise of a run within a block, measured first | $first % |
| r, runs of an arm in a block, chosen for $AIM_NOISE_PCT % | $r |
| noise of an arm within a block in the campaigns without a gain | $noise_aa % |
| in those with one | $noise_drag % |
| attempts, of these void or lost | $(sql "SELECT sum(attempts) || ', ' || sum(attempts_void) FROM v_cost") |

## Nothing helps
$n_aa campaigns of three knobs that do nothing (\`real_aa.lua\`, mode standard, two confirm stages share alpha 0.05):
**$false_wins with a false win, at most $MAX_FALSE of 30 are allowed: $said_aa**.

| verdict | hypotheses |
|---|---|
$(outcomes real-aa-%)

## A slow-down of 3 % that one knob removes
$n_drag campaigns (\`real_drag.lua\`, mode standard, one confirm stage): **found in $found, at least $MIN_FOUND_PCT % are asked for: $said_drag**.
In $wrong a knob that does nothing was accepted. The truth is +3.0 %; est is that of the final stage, on fresh blocks.

| campaign | knob | verdict | pairs | at the stop, % | final, % | interval |
|---|---|---|---|---|---|---|
$(sql "SELECT '| ' || c.name || ' | ' || e.knob || ' | ' || e.outcome || ' | ' || e.n || ' | ' || $(percent e.est) || ' | ' ||
	$(percent c.est) || ' | ' || $(percent c.lo) || ' to ' || $(percent c.hi) || ' |'
	FROM v_campaign c LEFT JOIN v_experiment e USING (campaign) WHERE c.name LIKE 'real-drag-%' ORDER BY campaign, e.stage_seq")
END
[ -z "${LONG:-}" ] || cp "$tmp/report.md" experiments/reports/real-aa.md
exit "${bad:-0}"
