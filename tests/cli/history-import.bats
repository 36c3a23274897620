#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle history import: files of a team become imported series, whole or not at all.

setup() {
	FETTLE=${FETTLE:?set it to the fettle that is tested}
	cd "$BATS_TEST_TMPDIR" || exit 1
	export TZ=UTC FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
	printf 'time,commit,step_time_ms,speed\n2024-01-02 03:00,b,11,5\n2024-01-01 03:00,a,10,6\n' >gpt.csv
}

points() {
	sqlite3 -readonly ws/fettle.db "SELECT workload, metric, unit, better, night, value FROM v_series ORDER BY metric, night"
}

@test "CSV, JSON lines and OpenMetrics, packed and not, become series" {
	run "$FETTLE" history import gpt.csv
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == "gpt.csv: 2 rows, 2 series, 4 points added"* ]]
	[[ $output == *"series 2 gpt step_time_ms ms (new): 2 nights, 2023-12-31 to 2024-01-01, 2 added"* ]]
	[[ $output == *"note: of 1 series it is not known whether more or less is better"*"--metric 'speed:up'"* ]]
	[ "$(points | tail -n 2)" = $'gpt|step_time_ms|ms|down|2023-12-31|10.0\ngpt|step_time_ms|ms|down|2024-01-01|11.0' ]

	echo '{"time": 1704250800, "metrics": {"speed": 7}, "cuda": "13"}' | gzip >gpt.jsonl.gz
	"$FETTLE" history import -m speed:none gpt.jsonl.gz --json >json
	jq -e '.format == "fettle.import/1" and .rows == 1 and .series[0].series == 1 and .series[0].added == 1 and
		.series[0].last == "2024-01-02" and (.series[0].new | not)' json
	printf '# TYPE speed gauge\nspeed{workload="gpt"} 8 1704337200\nspeed 8\n' >gpt.prom
	run "$FETTLE" history import gpt.prom
	[ "$status" = 4 ]
	[[ $output == *"gpt.prom, line 3: no time behind the value"* ]]
	sed -i 3d gpt.prom
	"$FETTLE" history import gpt.prom
	[ "$(points | grep speed | tail -n 2)" = $'gpt|speed||none|2024-01-02|7.0\ngpt|speed||none|2024-01-03|8.0' ]
}

@test "a second import adds what is new; a contradiction is refused whole" {
	"$FETTLE" history import gpt.csv
	printf '2024-01-03T04:00:00+01:00,c,12,\n' >>gpt.csv
	run "$FETTLE" history import gpt.csv
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"3 nights, 2023-12-31 to 2024-01-02, 1 added, 2 as stored"* ]]
	sed -i 's/,b,11,/,b,12,/' gpt.csv
	printf '2024-01-04,d,13,\n' >>gpt.csv
	run "$FETTLE" history import gpt.csv
	echo "$output"
	[ "$status" = 4 ]
	[[ $output == *"gpt.csv, line 2, step_time_ms: night 2024-01-01 is stored with 11 (of 1), here it is 12 (of 1): --replace takes the file's" ]]
	[ "$(points | grep -c 2024-01-04)" = 0 ]
	"$FETTLE" history import -n --replace gpt.csv | grep -q 'not stored: --dry-run'
	[ "$(points | grep -c 2024-01-04)" = 0 ]
	"$FETTLE" history import --replace gpt.csv
	[ "$(points | grep -c '2024-01-04\|2024-01-01|12.0')" = 2 ]
}

@test "a file that is refused keeps no other out; options that name nothing are told" {
	printf 'time,a\n2024-13-01,1\n' >bad.csv
	run "$FETTLE" history import bad.csv gpt.csv
	echo "$output"
	[ "$status" = 4 ]
	[[ $output == *'bad.csv, line 2, time: "2024-13-01" is no time: expected a date like 2026-11-29'* ]]
	[[ $output == *"gpt.csv: 2 rows, 2 series, 4 points added"* ]]
	run "$FETTLE" history import -m sped gpt.csv
	[ "$status" = 2 ]
	[[ $output == *'no field "sped" (--metric); did you mean "speed"?; there are: time, commit, step_time_ms, speed'* ]]
	run "$FETTLE" history import --zone Mars/Olympus gpt.csv
	[ "$status" = 2 ] || [ "$status" = 64 ]
	[[ $output == *"knows no time zone Mars/Olympus"* ]]
	run "$FETTLE" history import
	[[ $output == *"which file?"* ]]
	run "$FETTLE" history import --workload '' gpt.csv
	[ "$status" = 2 ] || [ "$status" = 64 ]
	[[ $output == *"--workload wants a name"* ]]
	# 03:00 in Tokyo is 18:00 the day before in UTC
	"$FETTLE" history import --zone Asia/Tokyo --workload t gpt.csv
	sqlite3 -readonly ws/fettle.db "SELECT DISTINCT night, at_utc FROM v_series WHERE workload = 't' ORDER BY 1" >got
	[ "$(cat got)" = $'2023-12-31|2023-12-31 18:00:00\n2024-01-01|2024-01-01 18:00:00' ]
}

@test "every option of history import is in the man page" {
	man=$(mandoc -T ascii "$BATS_TEST_DIRNAME/../../orchestrator/fettle.1" | col -b)
	"$FETTLE" history import --help | grep -oE -- '--[a-z][a-z-]*' | grep -vE -- '--(help|usage)$' | sort -u >options
	[ "$(wc -l <options)" -ge 12 ]
	while read -r option; do
		[[ $man == *"$option"* ]] || { echo "not in the man page: $option"; return 1; }
	done <options
}

@test "history import: what changed lately is looked for at once, and told once" {
	for i in $(seq 10 49); do
		printf '2026-%02d-%02d,%s\n' $((i / 25 + 5)) $((i % 25 + 1)) $(((i > 43 ? 900 : 1000) + i * 7 % 5))
	done | sed '1i time,step_time_ms' >runs.csv
	run -0 "$FETTLE" history import runs.csv --metric step_time_ms:up -w new
	[[ $output == *"looked at 1 series up to 2026-06-25: 1 confirmed, 0 suspected; 1 regressions are open"* ]]
	run -1 "$FETTLE" regressions -w new
	[[ $output == *"2026-06-20"*"worse"*"-10.0 %"* ]]
	run -0 "$FETTLE" history import runs.csv --metric step_time_ms:up -w new
	[[ $output == *": 0 confirmed, 0 suspected; 1 regressions are open"* ]]
	run -0 "$FETTLE" history import --dry-run runs.csv --metric step_time_ms:up -w none
	[[ $output != *"looked at"* ]]
}
