#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# run.sh CORPORA FUZZER... : run fuzzers beside each other, as many as there are processors, then print "N passed, N failed".
# Each begins with its corpus of tests/fuzz/corpus and what CORPORA/NAME has from earlier runs, where it also puts what it finds.
# FUZZ_S: seconds for each (30). FUZZ_RUNS: at most as many inputs, and the same ones each time.
set -u

if [ "$1" = --one ]; then
	fuzzer=$3
	name=${3##*/fuzz_}
	own=$2/$name
	shift 3
	mkdir -p "$own" "tests/fuzz/corpus/$name"
	# shellcheck disable=SC2046 # file names without blanks
	sh tests/fuzz/dict.sh "tests/fuzz/fuzz_$name.c" $(sh tests/fuzz/dict.sh --sources "$name") >"$own.dict"
	[ ! -s "$own.dict" ] || set -- -dict="$own.dict" # an empty one is refused
	[ -z "${FUZZ_RUNS:-}" ] || set -- "$@" -seed=1 -runs="$FUZZ_RUNS"
	# An input takes milliseconds; the limit is for a machine that stands still meanwhile.
	if "$fuzzer" "$@" -max_total_time="${FUZZ_S:-30}" -timeout=60 -rss_limit_mb=1024 -print_final_stats=1 \
		-artifact_prefix="$own-" "$own" "tests/fuzz/corpus/$name" >"$own.log" 2>&1; then
		echo "ok $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$own.log") inputs"
	else
		tail -n 60 "$own.log" | sed 's/^/# /'
		echo "not ok $name: make fuzz T=fuzz_$name, $own.log"
	fi
	exit 0
fi

corpora=$1
shift
mkdir -p "$corpora"
printf '%s\n' "$@" | xargs -n 1 -P "$(nproc)" sh "$0" --one "$corpora" | tee "$corpora/results"
awk -v all=$# '
/^ok / { passed++ }
END { printf "%d passed, %d failed\n", passed, all - passed; exit passed < all || !all }' "$corpora/results"
