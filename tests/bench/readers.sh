#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# readers.sh : READERS (16) that look all the time beside one writer: `fettle status` and `fettle report`, each a program of its
# own, beside a campaign in blocks of two; and 16 processes of Optuna's that load the study beside one that asks and tells.
# Between two looks of a reader are PAUSE (0.05) s in both. What counts is errors; the writer's slow-down holds
# what 16 processes take of this machine's processors. ROUNDS (2) in turn.
set -eu
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
scratch readers
readers=${READERS:-16} pause=${PAUSE:-0.05} rounds=${ROUNDS:-2}
blocks=${LONG:+2000} trials=${LONG:+200}
blocks=${blocks:-100} trials=${trials:-15}
optuna=$(version optuna)
python=$(bin optuna)/python
jq -n '{persist: false, metrics: {bench_metric: 100}}' >"$dir/truth.json"
sed "s/aa = 1000/aa = $blocks/; s/repeats = 50/repeats = 1/" tests/bench/ingest.lua >"$dir/writer.lua"
sed "s/aa = 1000/aa = 2/; s/repeats = 50/repeats = 2/" tests/bench/ingest.lua >"$dir/first.lua"

fettle_reader() { # I
	looks=0 errors=0
	: >"$dir/ready.$1"
	while [ ! -e "$dir/stop" ]; do
		"$fettle" status -w "$dir/ws" >/dev/null 2>>"$dir/errors" || errors=$((errors + 1))
		"$fettle" report 1 --format json -o "$dir/report.$1" -w "$dir/ws" >/dev/null 2>>"$dir/errors" || errors=$((errors + 1))
		looks=$((looks + 2))
		sleep "$pause"
	done
	echo "$looks $errors"
}
optuna_reader() { "$python" tests/bench/optuna_reader.py "sqlite:///$dir/optuna.db" "$dir/ready.$1" "$dir/stop" "$pause" 2>>"$dir/errors"; }
fettle_writer() { "$fettle" run --anyway -q --fake "$dir/truth.json" -w "$dir/ws" "$dir/writer.lua"; }
optuna_writer() { "$python" tests/bench/optuna_trials.py "sqlite:///$dir/optuna.db" "$trials"; }
fettle_new() {
	rm -rf "$dir/ws"
	"$fettle" run -q --fake "$dir/truth.json" -w "$dir/ws" "$dir/first.lua" >/dev/null
}
optuna_new() {
	rm -f "$dir/optuna.db"
	"$python" tests/bench/optuna_trials.py "sqlite:///$dir/optuna.db" 2
}

# writes WHO : ms of wall time; failures of the writer are errors too
writes() {
	began=$(date +%s%N)
	"$1_writer" >"$dir/$1.out" 2>>"$dir/errors" || echo "1" >>"$dir/$1.failed"
	echo $((($(date +%s%N) - began) / 1000000))
}
round() { # WHO : more lines in $dir/WHO.alone, .beside, .looks, .errors, and the slow-down in $dir/WHO
	"$1_new"
	alone=$(writes "$1")
	"$1_new"
	rm -f "$dir"/ready.* "$dir/stop"
	: >"$dir/$1.failed"
	pids=
	for i in $(seq "$readers"); do
		"$1_reader" "$i" >"$dir/looks.$i" &
		pids="$pids $!"
	done
	while [ "$(find "$dir" -name 'ready.*' | wc -l)" -lt "$readers" ]; do sleep 0.1; done
	beside=$(writes "$1")
	: >"$dir/stop"
	for pid in $pids; do wait "$pid" || echo 1 >>"$dir/$1.failed"; done
	cat "$dir"/looks.* | awk -v failed="$(wc -l <"$dir/$1.failed")" '{ e += $2 } END { print e + failed }' >>"$dir/$1.errors"
	cat "$dir"/looks.* | awk -v ms="$beside" '{ n += $1 } END { printf "%.2f\n", ms / n }' >>"$dir/$1.looks"
	echo "$alone $beside" | awk '{ printf "%.2f\n", $2 / $1 }' >>"$dir/$1.slower"
	echo "$1: $alone ms alone, $beside ms beside $readers readers, $(tail -n 1 "$dir/$1.looks") ms a look, $(tail -n 1 "$dir/$1.errors") errors"
}

for _ in $(seq "$rounds"); do
	round fettle
	[ ! -x "$python" ] || round optuna
done
sort "$dir/errors" | uniq -c | sort -rn | head -n 5
of() { cat "$dir/$1" 2>/dev/null || true; }
row "errors, $readers readers beside one writer" "" "$(of fettle.errors)" "$(of optuna.errors)" "$optuna" 'fettle<=0'
row "the writer's wall time beside them / alone" times "$(of fettle.slower)" "$(of optuna.slower)" "$optuna"
row "from a look of any of them to the next one" ms "$(of fettle.looks)" "$(of optuna.looks)" "$optuna"
