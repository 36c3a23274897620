#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle history watch: logs of ordinary jobs become points of an observed series, each once.

setup() {
	FETTLE=${FETTLE:?set it to the fettle that is tested}
	cd "$BATS_TEST_TMPDIR" || exit 1
	export TZ=UTC FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
	mkdir -p logs/old
	log 100 logs/train-1.out '2024-01-02 03:00'
	log 110 logs/old/train-2.out '2024-01-02 04:00'
	log 90 logs/train-3.out '2024-01-02 20:00'
	echo 'nothing that a probe knows' >logs/notes.txt
	touch -d '2024-01-02 03:00' logs/notes.txt
	log 500 logs/train-4.out now
}

# A log of Megatron-LM whose steps take so many ms.
log() {
	for i in 1 2 3 4 5; do
		echo " iteration $i/ 5 | consumed samples: 8 | elapsed time per iteration (ms): $1.0 | learning rate: 1.0E-04 | global batch size: 8 | loss scale: 1.0 | number of skipped iterations: 0 | number of nan iterations: 0 |"
	done >"$2"
	touch -d "$3" "$2"
}

points() {
	sqlite3 -readonly ws/fettle.db "SELECT source, workload, metric, night, n, value FROM v_series WHERE source = 'observed' ORDER BY night"
}

@test "each log counts once, in its night; what grows is left for later" {
	run "$FETTLE" history watch --workload gpt --metric step_time_ms logs
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"2024-01-01  not counted  $PWD/logs/notes.txt: no probe knows such a text"* ]]
	[[ $output == *"2024-01-01  110 ms  $PWD/logs/old/train-2.out"* ]]
	[[ $output == *"series 1 (observed), step_time_ms of gpt: 3 logs counted, 0 known, 1 without it, 1 written within 10 min: later"* ]]
	[ "$(points)" = $'observed|gpt|step_time_ms|2024-01-01|2|105.0\nobserved|gpt|step_time_ms|2024-01-02|1|90.0' ]
	# again, touched, and copied: nothing new
	touch -d '2024-01-09 01:00' logs/train-3.out
	cp -p logs/train-1.out logs/train-1.copy
	"$FETTLE" history watch -s 1 -j logs >json
	jq -es '.[-1] | .counted == 0 and .known == 4 and .copies == 1 and .growing == 1' json
	[ "$(points | wc -l)" = 2 ]
	# a log that was written to since counts anew, in its new night; names are chosen
	log 120 logs/train-3.out '2024-01-05 20:00'
	log 130 logs/other.out '2024-01-05 21:00'
	"$FETTLE" history watch -s 1 -n 'train-*' logs
	[ "$(points)" = $'observed|gpt|step_time_ms|2024-01-01|2|105.0\nobserved|gpt|step_time_ms|2024-01-05|1|120.0' ]
	run "$FETTLE" history watch -s 1 --settled 0 -n 'train-4*' logs
	[[ $output == *"500 ms"*"1 logs counted"* ]]
}

@test "the series is the one that is named, and what cannot be read is told" {
	printf 'night,speed\n2024-01-01,5\n' >gpt.csv
	"$FETTLE" history import gpt.csv
	run "$FETTLE" history watch --workload gpt --metric sped logs
	[ "$status" = 2 ]
	[[ $output == *"there is no series of sped of gpt, and no metric of that name"* ]]
	"$FETTLE" history import --workload llm -m a:down:ms --as a=step_time_ms --place p1 <(printf 'night,a\n2024-01-01,5\n')
	"$FETTLE" history import --workload llm -m a:down:ms --as a=step_time_ms --place p2 <(printf 'night,a\n2024-01-01,5\n')
	run "$FETTLE" history watch --workload llm --metric step_time_ms logs
	[ "$status" = 2 ]
	[[ $output == *"there are several series of step_time_ms of llm: 2 on p1, 3 on p2; --series N says which"* ]]
	"$FETTLE" history watch -s 3 logs
	[ "$(sqlite3 -readonly ws/fettle.db "SELECT DISTINCT place, unit, better FROM v_series WHERE source = 'observed'")" = 'p2|ms|down' ]
	run "$FETTLE" history watch -s 3 absent logs
	[ "$status" = 4 ]
	[[ $output == *"absent"*"No such file"*"4 known"* ]]
	run "$FETTLE" history watch logs
	[[ $output == *"which series? --series N, or --workload and --metric"* ]]
}

@test "every option of history watch is in the man page" {
	man=$(mandoc -T ascii "$BATS_TEST_DIRNAME/../../orchestrator/fettle.1" | col -b)
	man=${man#*history watch}
	man=${man%%Before a campaign*}
	"$FETTLE" history watch --help | grep -oE -- '--[a-z][a-z-]*' | grep -vE -- '--(help|usage|version)$' | sort -u >options
	[ "$(wc -l <options)" -ge 6 ]
	while read -r option; do
		[[ $man == *"$option"* ]] || { echo "not in the man page: $option"; return 1; }
	done <options
}
