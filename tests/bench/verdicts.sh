#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# verdicts.sh: what the engine's verdicts are worth, by simulation: false wins where nothing helps, power, runs,
# bias and coverage, as Markdown on stdout (kept in experiments/reports/verdicts.md). Without LONG=1 a
# sketch of 200 campaigns a row. CAMPAIGNS=N and SEED=S say otherwise; FROM=I leaves out the rows before I.
FETTLE=${FETTLE:-build/fettle}
if [ -n "${LONG:-}" ]; then n=${CAMPAIGNS:-5000}; else n=${CAMPAIGNS:-200}; fi
seed=${SEED:-20261129}
dir=$(mktemp -d) || exit 4
trap 'rm -rf "$dir"' EXIT
bad=0

# recipe MODE ROUNDS: the ten candidates of the tests in that mode.
recipe() {
	sed -e "s/mode = \"standard\"/mode = \"$1\"/" -e "s/rounds = 3/rounds = $2/" \
		tests/fixtures/recipes/ten.lua >"$dir/ten.lua"
}
# play TRUTH: result in $dir/out. Rows must not share their noise, so each has a seed of its own.
play() {
	printf '%s\n' "$1" >"$dir/truth.json"
	"$FETTLE" simulate "$dir/ten.lua" --truth "$dir/truth.json" --campaigns "$n" --seed $((seed + row)) --json >"$dir/out" ||
		exit 4
	cpu=$(awk -v a="$cpu" -v b="$(get cpu_s)" 'BEGIN { print a + b }')
	all=$((all + n))
}
# get MEMBER [OBJECT]: a number of the result.
get() {
	awk -v want="\"$1\":" -v in_object="${2:+\"$2\":}" '
		in_object != "" && index($0, in_object) { inside = 1 }
		(in_object == "" || inside) && $1 == want { sub(/,$/, "", $2); print $2; exit }' "$dir/out"
}
calc() { awk "BEGIN { printf \"$1\", $2 }"; }

next_row() {
	row=$((row + 1))
	[ "$row" -ge "${FROM:-1}" ]
}

# false_wins NAME MOST TRUTH: a row; MOST percent and 2.5 standard errors of it may be false.
false_wins() {
	next_row || return 0
	play "$3"
	w=$(get false_wins)
	most=$(calc '%d' "$n * $2 / 100 + 2.5 * sqrt($n * $2 / 100 * (1 - $2 / 100))")
	mark=
	[ "$w" -le "$most" ] || { mark=' **too many**' bad=1; }
	printf '| %s | %s | %s (%s %%)%s | %s | %s | %s | %s %% |\n' "$1" "$n" "$w" "$(calc '%.2f' "100 * $w / $n")" "$mark" \
		"$most" "$(calc '%.1f' "$(get runs_search_mean)")" "$(calc '%.2f' "$(get confirms_mean)")" \
		"$(calc '%.2f' "100 * $(get coverage repeated)")"
}
# power NAME GAIN NOISE
power() {
	next_row || return 0
	play "{\"sd_run\": $3, \"sd_alloc\": 0.03, \"effects\": {\"K4=1\": $2}}"
	f=$(get n final)
	printf '| %s | +%s %% | %s %% | %s | %s | %s | %s | %s | %s | %s |\n' "$1" "$(calc '%g' "100 * $2")" "$(calc '%g' "100 * $3")" "$n" \
		"$(calc '%.3f' "$(get true_wins) / $n")" "$(calc '%.1f' "$(get runs_search_mean)")" "$f" \
		"$(if [ "$f" -gt 0 ]; then calc '%+.3f' "100 * $(get bias final)"; else echo none; fi)" \
		"$(if [ "$f" -gt 0 ]; then calc '%.1f %%' "100 * $(get coverage final)"; else echo none; fi)" \
		"$(calc '%.2f %%' "100 * $(get coverage repeated)")"
}

all=0 cpu=0 row=0
cat <<END
# What the verdicts are worth

Made by \`LONG=1 CAMPAIGNS=$n SEED=$seed sh tests/bench/verdicts.sh\`: whole campaigns through the engine
that decides real ones (\`fettle simulate\`, only the results are made up), ten candidates, noise of an
allocation 3 %, $n campaigns a row. The seed of row i is $seed + i.

## False wins where nothing helps
Three confirm stages share alpha 0.05; after a refutation the next candidate is taken. The bound is 5 % (strict
1 %) plus 2.5 standard errors of so many campaigns. Runs: timed runs of screen and confirm. Covered: the
repeated 95 % interval, at the look where a confirm stopped, holds the truth.

| nothing helps | campaigns | with a false win | bound | mean runs | confirm stages | covered |
|---|---|---|---|---|---|---|
END
recipe standard 3
for s in 1 2 3 5; do
	false_wins "noise $s %" 5 "{\"sd_run\": 0.0$s, \"sd_alloc\": 0.03}"
done
false_wins 'noise 2 %, 5 % stragglers, 8 % slower' 5 '{"sd_run": 0.02, "straggler_p": 0.05, "straggler": 0.08}'
false_wins 'noise 2 %, Student t with 3 df' 5 '{"sd_run": 0.02, "tails": 3}'
false_wins 'noise 2 %, AR(1) 0.5 between allocations' 5 '{"sd_run": 0.02, "ar1": 0.5}'
false_wins 'noise 2 %, one arm 3 times noisier' 5 '{"sd_run": 0.02, "noisier": {"K3=1": 3}}'
false_wins 'noise 1 %, later runs of a job 1 % slower' 5 '{"sd_run": 0.01, "order": -0.01}'
false_wins 'noise 2 %, 5 % of trials fail' 5 '{"sd_run": 0.02, "faults": {"failed_trial": 0.05}}'
false_wins 'noise 2 %, arm by allocation 1 %' 5 '{"sd_run": 0.02, "sd_arm_alloc": 0.01}'
recipe standard 1
false_wins 'noise 2 %, one confirm at full alpha' 5 '{"sd_run": 0.02}'
recipe strict 3
false_wins 'noise 2 %, strict' 1 '{"sd_run": 0.02}'

cat <<END

## Power, runs, final estimates
One candidate helps, nine do nothing. Final: the estimate over the fixed number of fresh blocks, against the
truth in percentage points, and how often its 95 % interval holds the truth.

| mode | gain | noise | campaigns | power | mean runs | finals | bias | final covered | repeated covered |
|---|---|---|---|---|---|---|---|---|---|
END
for rounds in 1 3; do
	recipe standard $rounds
	for gain in 0.01 0.02 0.05; do
		power "standard, $rounds confirm$([ $rounds = 1 ] || echo s)" $gain 0.01
	done
	power "standard, $rounds confirm$([ $rounds = 1 ] || echo s)" 0.05 0.02
done
recipe strict 3
power 'strict, 3 confirms' 0.02 0.01
cat <<END

$all campaigns took $(calc '%.0f' "$cpu") s of one core: $(calc '%.0f' "60 * $all / $cpu") a minute.
END
exit $bad
