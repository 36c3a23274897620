#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# efficiency.sh: what a recommendation costs in runs, and what it is worth, on surfaces whose truth is known
# (tests/bench/surfaces): `fettle run` on scheduler fake, beside best of n, Welch's t with fixed n, Optuna's TPE and a
# full grid on the same drawn values. Writes build/bench/efficiency.md, which is experiments/reports/efficiency.md.
#
#   KEEP=DIR sh tests/bench/efficiency.sh
#
# CAMPAIGNS (100; LONG=1: 300) of fettle and of each peer a surface, half as many of TPE, 500 (2,000) simulated ones without
# what helps. Takes about 15 minutes of one core. With KEEP=DIR a surface's rows stay in DIR and are not made again while all
# that they hang on is the same; SURFACES="one-2 drift" makes these only and writes no report (two shells may share a DIR).
set -eu
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
scratch efficiency
campaigns=${CAMPAIGNS:-${LONG:+300}}
campaigns=${campaigns:-100}
nulls=${NULLS:-${LONG:+2000}}
nulls=${nulls:-500}
keep=${KEEP:-$dir/keep}
out=${build%/*}/bench
mkdir -p "$keep" "$out"
optuna=$(version optuna)
python=$(bin optuna)/python
ws=$(mktemp -d "${FETTLE_SHM:-/dev/shm}/efficiency.XXXXXX") # in memory: fsync costs nothing there, and is not what is measured
trap 'rm -rf "$dir" "$ws"' EXIT

bench() { FETTLE_RECIPES=$PWD/recipes "$build/tests/bench/efficiency" "$@"; }

# What fettle claimed, a record a campaign: when its first win was accepted, and at the end.
records() {
	sqlite3 -readonly -tabs "$ws/fettle.db" "
		WITH win AS (SELECT campaign, min(stage_seq) AS seq FROM v_experiment WHERE outcome = 'accepted' GROUP BY campaign),
			first AS (SELECT e.* FROM v_experiment e JOIN win ON e.campaign = win.campaign AND e.stage_seq = win.seq
				AND e.outcome = 'accepted'),
			run AS (SELECT c.campaign, count(*) AS runs FROM v_campaign c LEFT JOIN win USING (campaign)
				JOIN v_trial t ON t.campaign = c.campaign AND t.kind = 'timed' AND t.stage_kind IN ('aa', 'screen', 'confirm')
					AND t.stage_seq <= coalesce(win.seq, 1000000) GROUP BY c.campaign)
		SELECT 'fettle, first win', run.runs, run.runs * k.node_s / k.trials_all, f.est, f.lo, f.hi, f.campaign IS NOT NULL,
			coalesce(f.knob || '=' || f.value, '')
		FROM v_campaign c JOIN run USING (campaign) JOIN v_cost k USING (campaign) LEFT JOIN first f USING (campaign)
		WHERE c.state = 'done';
		SELECT 'fettle, validated', k.trials_timed, k.node_s, c.est, c.lo, c.hi, coalesce(c.fix = 'validated', 0),
			coalesce((SELECT replace(arm_label, ', ', ' ') FROM v_trial t WHERE t.campaign = c.campaign
				AND t.stage_kind = 'final' AND arm_label <> 'default' LIMIT 1), '')
		FROM v_campaign c JOIN v_cost k USING (campaign) WHERE c.state = 'done'"
}

run_fettle() { # NAME SEED : $dir/NAME.fettle
	i=0
	while [ "$i" -lt "$campaigns" ]; do
		# a workspace of fifty campaigns: tables stay small
		[ $((i % 50)) -gt 0 ] || rm -rf "${ws:?}"/*
		sed "s/seed = 1,/seed = $(($2 + i)),/" "$dir/$1.lua" >"$dir/run.lua"
		"$fettle" run -q --fake "$dir/$1.fake" -w "$ws" "$dir/run.lua" >"$dir/log" 2>&1 || {
			tail -n 20 "$dir/log" >&2
			exit 1
		}
		i=$((i + 1))
		if [ $((i % 50)) -eq 0 ] || [ "$i" -eq "$campaigns" ]; then records >>"$dir/$1.fettle"; fi
	done
}

# What fettle found of the best, less a standard error: what fixed n has to find as often.
power() { # PROCEDURE MEMBER NAME
	of "$1" "if $2 == 0 then 0 else (($2 + 1) / (.campaigns + 2)) as \$p | \$p - (\$p * (1 - \$p) / .campaigns | sqrt) end" "$3"
}

# The same engine in one process: false wins where nothing helps, and campaigns that end with their first win (one round).
simulated() { # NAME SEED
	"$fettle" simulate "$dir/$1.lua" --truth "$dir/$1.null" --campaigns "$nulls" --seed "$2" --json |
		jq -c '{procedure: "fettle, nothing helps", null_campaigns: .campaigns, null_wins: .false_wins}' >>"$dir/$1.rows"
	sed 's/seed = 1,/rounds = 1,/' "$dir/$1.lua" >"$dir/one.lua"
	"$fettle" simulate "$dir/one.lua" --truth "$dir/$1.truth" --campaigns "$nulls" --seed "$2" --json |
		jq -c '([.candidates[].true_gain] | max) as $most | {procedure: "fettle, one round", campaigns, runs: .runs_mean,
			seconds: (3600 * .node_hours_mean), claims: ([.candidates[].won] | add), not_real: .false_wins, idle: .false_wins, bad: .false_wins,
			best_single: (if $most > 0 then [.candidates[] | select(1.01 * (1 + .true_gain) > 1 + $most) | .won] | add else 0 end),
			estimates: .final.n, bias: .final.bias, intervals: (if (.final.rms_error // 0) > 1e-9 then .final.n else 0 end),
			covered: (.final.n * (.final.coverage // 0) | round)}' >>"$dir/$1.rows"
}

of() { jq -r --arg p "$1" "select(.procedure == \$p) | $2" "$dir/$3.rows"; } # PROCEDURE MEMBER NAME

surface_files() { # NAME
	file=tests/bench/surfaces/$1.json
	jq -r -f tests/bench/surfaces/recipe.jq "$file" >"$dir/$1.lua"
	jq '.truth' "$file" >"$dir/$1.truth"
}

make_rows() { # NAME : $keep/NAME.rows, a line of JSON a procedure
	surface_files "$1"
	seed=$(jq .seed "$file")
	jq '.truth + {in_memory: true, by_job: true, persist: false}' "$file" >"$dir/$1.fake"
	jq '.truth | .effects |= with_entries(select(.value <= 0))' "$file" >"$dir/$1.null"
	{ echo "$campaigns $nulls $optuna" && cat "$dir/$1.lua" "$dir/$1.truth"; } >"$dir/$1.asked"
	! cmp -s "$dir/$1.asked" "$keep/$1.asked" || [ ! -s "$keep/$1.rows" ] || return 0
	: >"$dir/$1.fettle"
	run_fettle "$1" "$seed"
	bench judge "$dir/$1.lua" "$dir/$1.truth" <"$dir/$1.fettle" >"$dir/$1.rows"
	first=$(power 'fettle, first win' .best_single "$1")
	whole=$(power 'fettle, validated' .best "$1")
	budget=$(of 'fettle, validated' .runs "$1")
	simulated "$1" "$seed"
	bench peers "$dir/$1.lua" "$dir/$1.truth" "$dir/$1.null" "$seed" "$campaigns" "$first" "$whole" "$budget" >>"$dir/$1.rows"
	[ ! -x "$python" ] || "$python" tests/bench/efficiency_tpe.py "$file" $((campaigns / 2)) "$budget" 3 env FETTLE_RECIPES="$PWD/recipes" \
		"$build/tests/bench/efficiency" oracle "$dir/$1.lua" "$dir/$1.truth" |
		bench judge "$dir/$1.lua" "$dir/$1.truth" >>"$dir/$1.rows"
	mv "$dir/$1.asked" "$keep/$1.asked"
	mv "$dir/$1.rows" "$keep/$1.rows"
	echo "$1 is made" >&2
}

names=$(for f in tests/bench/surfaces/*.json; do echo "$(jq .seed "$f") $(basename "$f" .json)"; done | sort -n | cut -d' ' -f2)
for name in ${SURFACES:-$names}; do make_rows "$name"; done
[ -z "${SURFACES:-}" ] || exit 0

all=$dir/all.json
for name in $names; do
	surface_files "$name"
	bench planned "$dir/$name.lua" "$dir/$name.truth" >"$dir/planned"
	cat "$keep/$name.rows" "$dir/planned" >"$dir/rows"
	jq --arg name "$name" --slurpfile rows "$dir/rows" '. + {name: $name, rows: $rows}' "tests/bench/surfaces/$name.json"
done | jq -s . >"$all"
show() { jq -r "$(cat tests/bench/efficiency.jq) $1" "$all"; }
report() {
	cat <<END
# What a recommendation costs, and what it is worth

Made by \`${LONG:+LONG=1 }sh tests/bench/efficiency.sh\` with $("$fettle" --version | head -n 1) and $optuna.

## What was measured, and how

Surfaces whose truth is known (\`tests/bench/surfaces/*.json\`, each with its source). Nine are made up, seven come from runs on H200. Of five of these \`fit.py\` there makes the
truth from the runs, which stand in the files: an arm's mean is its effect (nothing, within two standard errors of the default), what is left between runs, within blocks and between
them, is the noise. In the other two nearly every arm ran once, or nothing varied; their files say what was taken. What was not measured together is taken to multiply.

*fettle* is the program: \`fettle run\` on scheduler fake, mode standard with its defaults (three rounds share alpha 0.05), a campaign a seed; its
database is read afterwards. *First win*: runs of A/A, screen and confirm stages until the first setting is accepted, or all of them where none is. *Validated*: the whole
campaign: what is left of the winners, measured again on fresh blocks, the soak, and all later rounds, which look for more. *One round* is \`fettle simulate\` (the
same engine in one process) with \`rounds = 1\`: a complete campaign, final blocks and soak included, that ends with its first win. "Nothing helps" is simulated, too.

The peers (\`tests/bench/efficiency.c\`) draw their values from the same function, with the same seeds. All runs of a peer are of one allocation, in rounds of fixed
order: the noise of allocations, which fettle has to cancel by pairs, does not touch them. That is the kindest case; runs in a job each are below.

- *Best of n*: default and each setting n times, the highest mean is kept.
- *Welch*: the same with fixed n, one-sided t at 0.05 over the number of settings (Bonferroni). n is the smallest that finds the best as often as fettle does, less one standard error
  of fettle's share (where fettle finds nothing: as many runs as fettle). *The best* that passes is held against first win and one round, *all that pass* together against whole campaigns. Nobody knows this n beforehand.
- *Planned n*: the same test with the n that one would plan, told the noise but not the gain: it finds nine times in ten a gain of twice the noise of a run, as
  fettle's standard mode does with ten settings, or of 1 % where that is more.
- *TPE*: Optuna at its defaults, in memory, the default as first trial, a trial the mean of 3 runs, as many runs as whole campaigns of fettle. *Grid*: all configurations, 3 runs each.

*Found*: the recommended configuration is less than 1 % (min_effect) worse than the best one; for single winners, than the best single setting. *Not real*: its true gain is zero or less. *Idle part*: one of its settings
can be left out without loss. In brackets 95 % intervals (Wilson), after ± two standard errors. Campaigns a surface: $campaigns or more of fettle and of each peer, half as many of TPE, $nulls or more simulated.

$(show surfaces_table)

## Runs until one proved gain, beside fixed n

Surfaces on which one setting alone helps, and runs of Welch / runs of fettle at the false wins below; asked for: at least 2. The first n is the one with fettle's power on that very gain.

$(show ratio_table)

False wins of the same procedures where what helps is taken away (what harms stays), % of campaigns:

$(show null_table)

## Whole campaigns, beside all that pass

fettle's figures hold the search for second and third gains, removal of each winner in turn, the final blocks and the soak: the peer has none of these.

$(show whole_table)

## Winners that are not real

Campaigns that end with a recommendation of which at least one part does nothing or harms, %; after a semicolon, where it is less, those whose gain as a whole is zero or less.

$(show real_table)

## What it says

$(show prose)

## Each run in a job of its own

The same peers when every run is submitted alone and meets the noise of its own allocation. At most 64 runs of an arm were tried.

$(show apart_table)

## All rows
$(show all_rows)
END
}
report >"$out/efficiency.md"
cat "$out/efficiency.md"

# rows of make bench: of the two plainest surfaces
for name in one-2 one-5; do
	jq -r --arg name $name "$(cat tests/bench/efficiency.jq)"' .[] | select(.name == $name) | like("the best"; false) as $w
		| [first_win.runs, $w.runs, ($w | n_of), row("planned").runs, row("planned").n, .title] | @tsv' "$all" >"$dir/bench"
	IFS='	' read -r first welch n planned m title <"$dir/bench"
	row "runs until a proved gain: $title" runs "$first" "$welch" "Welch's t, n = $n, of the same power" 'ratio>=2'
	row "the same" runs "$first" "$planned" "Welch's t, n = $m, planned" 'ratio>=2'
done
