#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# trial.sh : what a trial costs that is on the disk for good: fettle campaigns on scheduler fake, which leaves the files that an agent
# would have left (their making is in the figures, and so is the judging), against Optuna's ask and tell of five parameters
# with SQLite storage; both sync. Of 100 and of 1,000 trials (LONG=1: 3,000 too, and the TPE sampler) the cost of each after the
# first, so without the start of the program; of a program that has one trial; and of a report. ROUNDS (2) in turn.
set -eu
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
scratch trial
rounds=${ROUNDS:-${LONG:+3}}
rounds=${rounds:-2}
optuna=$(version optuna)
python=$(bin optuna)/python
jq -n '{persist: false, metrics: {bench_metric: 100}}' >"$dir/truth.json"

campaign() { # NAME BLOCKS PAIRS: trials are committed by block, the workspace is $ws; of one pair is the smallest that there is
	sed "s/aa = 1000/aa = $2/; s/repeats = 50/repeats = $3/" tests/bench/ingest.lua >"$dir/ingest.lua"
	# What was removed shortly before costs the files that are made after it: ext4 passes over inodes just freed.
	ws=$dir/$1.$round
	timed "$1" "$fettle" run --fake "$dir/truth.json" -w "$ws" "$dir/ingest.lua"
	stored=$(sqlite3 -readonly "$ws/fettle.db" "SELECT count(*) FROM trial")
	[ "$stored" -eq $((2 * $2 * $3)) ] || {
		echo "$stored trials were stored, not $((2 * $2 * $3))" >&2
		exit 1
	}
}
study() { # NAME N [SAMPLER]
	[ -x "$python" ] || return 0
	rm -f "$dir/optuna.db"
	timed "$1" "$python" tests/bench/optuna_trials.py "sqlite:///$dir/optuna.db" "$2" ${3:+"$3"}
}
# each VALUE NAME N ONE M : what each of N trials costs by cpu_ms or wall_ms, beyond those M of ONE
each() {
	[ -e "$dir/$2" ] || return 0
	"$1" "$2" >"$dir/a"
	"$1" "$4" >"$dir/b"
	paste -d' ' "$dir/a" "$dir/b" | awk -v n="$(($3 - $5))" '{ printf "%.4f\n", ($1 - $2) / n }'
}
whole() { if [ -e "$dir/$2" ]; then "$1" "$2"; fi; }
both() { # WHAT N FETTLE_NAME OPTUNA_NAME PEER
	row "$1, CPU" ms "$(each cpu_ms "$3" "$2" fettle4 4)" "$(each cpu_ms "$4" "$2" optuna1 1)" "$5" 'ratio>=15' 'fettle<=2'
	row "$1, wall" ms "$(each wall_ms "$3" "$2" fettle4 4)" "$(each wall_ms "$4" "$2" optuna1 1)" "$5"
}

for round in $(seq "$rounds"); do
	campaign fettle4 2 1
	study optuna1 1
	campaign fettle100 2 25
	study optuna100 100
	campaign fettle1000 10 50
	campaign pairs1000 500 1
	study optuna1000 1000
	timed report "$fettle" report 1 --format html -o "$dir/report.html" -w "$ws"
	[ ! -x "$python" ] || timed listed "${python%/*}/optuna" trials --study-name bench --storage "sqlite:///$dir/optuna.db" -f json
	[ -z "${LONG:-}" ] || {
		campaign fettle3000 30 50
		[ "$round" -gt 1 ] || study optuna3000 3000
		[ "$round" -gt 1 ] || study tpe1000 1000 tpe
	}
done
row "a program with one trial (fettle: four in two blocks, the least), CPU" ms "$(cpu_ms fettle4)" "$(whole cpu_ms optuna1)" "$optuna" 'ratio>=15'
row "the same, wall" ms "$(wall_ms fettle4)" "$(whole wall_ms optuna1)" "$optuna"
both "durable trial, each of 100" 100 fettle100 optuna100 "$optuna"
both "durable trial, each of 1,000" 1000 fettle1000 optuna1000 "$optuna"
both "durable trial, each of 1,000, in blocks of two" 1000 pairs1000 optuna1000 "$optuna"
[ -z "${LONG:-}" ] || {
	both "durable trial, each of 3,000" 3000 fettle3000 optuna3000 "$optuna"
	both "durable trial, each of 1,000 (TPE)" 1000 fettle1000 tpe1000 "$optuna"
}
row "report of 1,000 trials as a page (Optuna: their list as JSON), CPU" ms "$(cpu_ms report)" "$(whole cpu_ms listed)" "$optuna"
row "memory of 1,000 trials" MiB "$(mib fettle1000)" "$(whole mib optuna1000)" "$optuna" 'fettle<=64'
