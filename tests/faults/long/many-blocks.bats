#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Campaigns of ten thousand blocks on scheduler fake, for LONG=1: what a block costs does not depend on how many came
# before, nor does the memory of the orchestrator; nothing is lost or counted twice by a kill in the middle; and whoever
# looks at it afterwards waits no longer for it than its size explains. Figures go to the terminal.

setup_file() {
	cd "$BATS_TEST_DIRNAME/../../.." || exit 1
	export FETTLE=${FETTLE:-$PWD/build/fettle}
	export BENCH=${FETTLE_BUILD:-$PWD/build/release}/tests/bench/probe_bench
	export MAX_KIB=65536
}
setup() { W=$BATS_TEST_TMPDIR/w; }

ask() { sqlite3 -readonly "$W/fettle.db" "$1"; }
say() { echo "# $*" >&3; }

# measured COMMAND...: sets rc, cpu_ms and kib
measured() {
	rc=0
	"$BENCH" run "$@" >"$W.out" 2>"$W.err" || rc=$?
	read -r cpu_ms kib < <(tail -n 1 "$W.err" | awk '{ printf "%.0f %d\n", 1000 * ($2 + $3), $4 }')
	[ "$kib" -le "$MAX_KIB" ] || { say "$* took $kib KiB" && return 1; }
}

# A block counts by one attempt, which has a trial for each slot, and none is in flight.
every_slot_once() {
	[ "$(ask 'PRAGMA integrity_check')" = ok ]
	[ "$(ask 'PRAGMA foreign_key_check' | wc -l)" -eq 0 ]
	[ "$(ask "SELECT count(*) FROM block b WHERE 1 <> (SELECT count(*) FROM attempt a WHERE a.block = b.id AND a.state = 'valid')")" = 0 ]
	[ "$(ask "SELECT count(*) FROM slot s WHERE 1 <> (SELECT count(*) FROM attempt a JOIN trial t ON t.attempt = a.id
		WHERE a.block = s.block AND a.state = 'valid' AND t.slot = s.idx AND t.arm = s.arm)")" = 0 ]
	[ "$(ask 'SELECT count(*) FROM trial')" = "$(ask 'SELECT count(*) FROM slot')" ]
	[ "$(ask "SELECT count(*) FROM attempt WHERE state IN ('planned', 'submitted')")" = 0 ]
	[ "$(ask 'SELECT state FROM campaign')" = "done" ]
}

# at_most NAME A B FACTOR: A is no more than FACTOR times B
at_most() {
	awk -v a="$2" -v b="$3" -v most="$4" 'BEGIN { exit !(a <= most * b) }' || {
		say "$1: $2 is more than $4 times $3"
		return 1
	}
}

# long_stage BLOCKS [BUDGET]: $W.lua and $W.json
long_stage() {
	sed "s/blocks = 10000/blocks = $1/; s/^	mode = /	$2&/" tests/fixtures/recipes/long-stage.lua >"$W.lua"
	echo '{"persist": false, "sd_run": 0.005, "nodes": 8, "ranks": {"--ranks 2": 2}, "effects": {"--ranks 2": 0.9}}' >"$W.json"
}

# look BLOCKS: each command that looks at a campaign; a line "command CPU" each
look() {
	for command in status "status 1" "report 1 --format html" "report 1 --format markdown" "report 1 --format json" \
		"report 1 --format csv" "resume 1 -q --fake $W.json" "backup $W.copy"; do
		out=()
		[[ $command != report* ]] || out=(-o "$W.report")
		# shellcheck disable=SC2086 # words of our own
		measured "$FETTLE" $command "${out[@]}" -w "$W"
		[ "$rc" -eq 0 ]
		say "$1 blocks, fettle ${command%% -q*}: $cpu_ms ms CPU, $((kib / 1024)) MiB"
		echo "$command:$cpu_ms" >>"$W.looks"
		[[ $command != report* ]] || [ "$(stat -c %s "$W.report")" -le 5000000 ]
	done
	[ "$(sqlite3 "$W.copy" 'SELECT count(*) FROM block')" = "$1" ]
}

@test "one stage of 10,000 blocks: memory, and what a look costs, beside one of 2,500" {
	for n in 2500 10000; do
		long_stage $n
		measured "$FETTLE" run -q --fake "$W.json" -w "$W" "$W.lua"
		[ "$rc" -eq 0 ]
		[ "$(ask "SELECT count(*) FROM attempt WHERE state = 'valid'")" = $n ]
		every_slot_once
		say "$n blocks in one stage: $(awk -v a="$cpu_ms" -v n=$n 'BEGIN { printf "%.2f", a / n }') ms CPU each, at most $((kib / 1024)) MiB"
		kibs+=("$kib") cpus+=("$cpu_ms")
		look $n
		mv "$W.looks" "$W.looks.$n"
		rm -rf "$W" "$W.copy"
	done
	at_most "CPU of four times as many blocks" "${cpus[1]}" "${cpus[0]}" 8
	at_most "memory of four times as many blocks" "${kibs[1]}" "${kibs[0]}" 3
	# the start of the program is in each
	while IFS=: read -r command few many; do
		at_most "CPU of $command" "$many" $((few + 50)) 8
	done < <(paste -d: "$W.looks.2500" <(cut -d: -f2 "$W.looks.10000"))
}

@test "the last thousand blocks of ten cost what the first cost" {
	long_stage 10000 'budget = { trials = 2000 },\n'
	args=(run --fake "$W.json" "$W.lua")
	for i in $(seq 10); do
		measured "$FETTLE" "${args[@]}" -q -w "$W"
		[ "$rc" -eq $((i < 10 ? 3 : 0)) ]
		[ "$(ask "SELECT count(*) FROM attempt WHERE state = 'valid'")" = $((1000 * i)) ]
		say "blocks $((1000 * i - 999)) to $((1000 * i)): $cpu_ms ms CPU, at most $((kib / 1024)) MiB"
		thousand[i]=$cpu_ms
		args=(resume 1 --fake "$W.json")
	done
	# the last one judges the stage and writes the reports, too
	at_most "CPU of the ninth thousand blocks" "${thousand[9]}" "${thousand[1]}" 2
	at_most "CPU of the last thousand blocks" "${thousand[10]}" "${thousand[1]}" 3
	every_slot_once
}

@test "10,000 blocks in a hundred stages, killed in the middle, three times" {
	sed 's/repeats = 13/repeats = 1, warmup_trials = 0, blocks_per_allocation = 40, scheduler = "fake"/
		s/aa = 3, final = 4/aa = 300, final = 300/' tests/bench/reports.lua >"$W.lua"
	jq '. + {persist: false, nodes: 20, at_once: 10, blocks_at_most: 0}' tests/bench/reports.json >"$W.json"
	args=(run --fake "$W.json" "$W.lua")
	for at in 1000 4000 7000; do
		"$FETTLE" "${args[@]}" -q -w "$W" >"$W.out" 2>&1 &
		pid=$!
		until [ "$(ask "SELECT count(*) FROM attempt WHERE state = 'valid'" 2>/dev/null || echo 0)" -ge $at ]; do
			kill -0 $pid
			sleep 0.2
		done
		kill -9 $pid
		wait $pid || [ $? -eq 137 ]
		[ "$(ask 'PRAGMA integrity_check')" = ok ]
		say "killed at $(ask "SELECT count(*) FROM attempt WHERE state = 'valid'") blocks in $(ask 'SELECT count(*) FROM stage') stages"
		args=(resume 1 --fake "$W.json")
	done
	measured "$FETTLE" "${args[@]}" -q -w "$W"
	[ "$rc" -eq 0 ]
	blocks=$(ask 'SELECT count(*) FROM block')
	say "$blocks blocks in $(ask 'SELECT count(*) FROM stage') stages; the last run: $cpu_ms ms CPU, at most $((kib / 1024)) MiB"
	[ "$blocks" -ge 9000 ]
	every_slot_once
	look "$blocks"
}
