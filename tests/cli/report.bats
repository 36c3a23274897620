#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# report and recommend on a campaign that ran through scheduler fake, and their formats.
# shellcheck disable=SC2016 # the backquotes of the messages are meant as they are

bats_require_minimum_version 1.5.0

setup_file() {
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	export TOP FETTLE_WORKSPACE=$BATS_FILE_TMPDIR/ws
	cat >"$BATS_FILE_TMPDIR/c.lua" <<-'END'
		return {
			name = "small",
			workload = {
				command = { "true" },
				workdir = "/",
				window = { warmup_steps = 5, steps = 20 },
				metrics = { file = true },
			},
			objective = "throughput_samples_per_s",
			target = 120,
			knobs = {
				{ name = "good", env = "SMALL_GOOD", values = { "it's $HOME" }, class = "neutral" },
				{ name = "bad", env = "SMALL_BAD", values = { 1 }, class = "neutral" },
			},
			mode = "quick",
			rounds = 2,
			blocks = { aa = 3, final = 4, soak = 3 },
		}
	END
	echo '{"effects":{"SMALL_GOOD=":0.3,"SMALL_BAD=":-0.3},"sd_run":0.01,"sd_alloc":0.01}' \
		>"$BATS_FILE_TMPDIR/truth.json"
	"$FETTLE" run "$BATS_FILE_TMPDIR/c.lua" -s fake -q --fake "$BATS_FILE_TMPDIR/truth.json"
}

# Every key of the JSON file $1 after the jq filter $2 stands in backquotes in REPORT.md.
documented() {
	local key bad=0

	for key in $(jq -r "$2 | [paths | map(select(type == \"string\")) | last] | unique | .[]" "$1"); do
		grep -q "\`$key\`" "$TOP/orchestrator/report/REPORT.md" || { echo "not documented: $key"; bad=1; }
	done
	return $bad
}

@test "every key of the golden files is documented" {
	documented "$TOP/tests/golden/report.json" 'del(.fix.settings, .fix.fingerprint, .environment)'
	documented "$TOP/tests/golden/recommend.json" 'del(.settings, .env, .fingerprint)'
}

# Against the schema; a key that it does not name counts as wrong.
fits() {
	/usr/bin/python3 "$TOP/tests/lint/schema.py" "$TOP/orchestrator/report/report.schema.json" "$@"
}

@test "the schema holds what is written, and no more than is documented" {
	local bad
	fits "$TOP/tests/golden/report.json"
	for bad in 'del(.fix.confirmed)' '.baseline.mean = "fast"' '.stages[0].new = 1' '.hypotheses[0].state = "tried"'; do
		jq "$bad" "$TOP/tests/golden/report.json" >"$BATS_TEST_TMPDIR/bad.json"
		! fits "$BATS_TEST_TMPDIR/bad.json" || { echo "taken for right: $bad"; return 1; }
	done
	jq -r '[.. | .properties? // empty | keys[]] | unique[]' "$TOP/orchestrator/report/report.schema.json" >"$BATS_TEST_TMPDIR/keys"
	while read -r key; do
		grep -q "\`$key\`" "$TOP/orchestrator/report/REPORT.md" || { echo "not documented: $key"; return 1; }
	done <"$BATS_TEST_TMPDIR/keys"
}

@test "report: Markdown with the five steps in order" {
	run "$FETTLE" report
	[ "$status" -eq 0 ]
	[ "$(grep -c '^## [1-5]\. ' <<<"$output")" -eq 5 ]
	[ "$(grep '^## [1-5]\. ' <<<"$output" | sort | tr -d '\n')" = \
		"$(grep '^## [1-5]\. ' <<<"$output" | tr -d '\n')" ]
	[[ $output == *'**accepted**'* ]]
	[[ $output == *'Target: 120 samples/s: **met**'* ]]
	[[ ! $output =~ [^a-z]nan[^a-z] ]]
}

@test "report: md is Markdown" {
	[ "$("$FETTLE" report --format md)" = "$("$FETTLE" report --format markdown)" ]
}

@test "report: the CSV counts the runs of every screened arm" {
	"$FETTLE" report --format csv >"$BATS_TEST_TMPDIR/r.csv"
	[ "$(awk -F, 'NR > 1 && $13 != "" { print $14 }' "$BATS_TEST_TMPDIR/r.csv" | sort -u)" = 2 ]
	[ "$(grep -c '"screen"' "$BATS_TEST_TMPDIR/r.csv")" -eq 1 ]
}

@test "report: without knobs there are no hypotheses, and an ab has no A/A stage" {
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
	sed '/^knobs = {/,/^},/d' "$BATS_FILE_TMPDIR/c.lua" >"$BATS_TEST_TMPDIR/n.lua"
	run "$FETTLE" run "$BATS_TEST_TMPDIR/n.lua" -s fake -q
	[[ $output == *'Bottleneck: no rule names one'*'has no knobs'* ]]
	[[ $output != *'Hypotheses:'* ]]
	run "$FETTLE" report
	[[ $output == *'Only the default was measured'* ]]
	[[ $output != *'`none`'* ]]
	"$FETTLE" ab --name ab --env A=1 --steps 3 --metric throughput_samples_per_s --metrics-file \
		-s fake -q -- true || true
	run "$FETTLE" report ab
	[[ $output == *'No A/A stage was asked for, so the noise'* ]]
	[[ $output != *'Nothing was measured yet'* ]]
}

@test "report: JSON that jq reads, with every key documented" {
	"$FETTLE" report small --format json >"$BATS_TEST_TMPDIR/r.json"
	[ "$(jq -r .format "$BATS_TEST_TMPDIR/r.json")" = fettle.report/1 ]
	[ "$(jq -r '.fix.settings.good' "$BATS_TEST_TMPDIR/r.json")" = "it's \$HOME" ]
	[ "$(jq -r '[.hypotheses[] | select(.knob == "good") | .verdict.outcome][0]' \
		"$BATS_TEST_TMPDIR/r.json")" = accepted ]
	[ "$(jq '[.hypotheses[].shown[] | select(.key == "env.SMALL_GOOD")] | length > 0' \
		"$BATS_TEST_TMPDIR/r.json")" = true ]
	[ "$(jq '.stages[0].logs | length' "$BATS_TEST_TMPDIR/r.json")" -eq 3 ]
	documented "$BATS_TEST_TMPDIR/r.json" 'del(.fix.settings, .fix.fingerprint, .environment)'
	fits "$BATS_TEST_TMPDIR/r.json"
	"$FETTLE" report 1 --json | cmp - "$BATS_TEST_TMPDIR/r.json"
}

@test "report: a table that sqlite reads, a row an experiment, with every column documented" {
	"$FETTLE" report --format csv >"$BATS_TEST_TMPDIR/r.csv"
	cmp "$BATS_TEST_TMPDIR/r.csv" "$FETTLE_WORKSPACE/reports/campaign-1.csv"
	sqlite3 :memory: ".import --csv $BATS_TEST_TMPDIR/r.csv t" ".mode list" \
		"SELECT stage, knob, outcome, effect_pct + 0 > 5, lo_pct + 0 <= effect_pct + 0, runs + 0 > 0 FROM t WHERE outcome <> ''" \
		>"$BATS_TEST_TMPDIR/rows" 2>"$BATS_TEST_TMPDIR/complaints"
	[ ! -s "$BATS_TEST_TMPDIR/complaints" ] # such as a record with too many fields
	grep -qx 'confirm|good|accepted|1|1|1' "$BATS_TEST_TMPDIR/rows"
	grep -qx 'final||validated|1|1|1' "$BATS_TEST_TMPDIR/rows"
	for key in $(head -1 "$BATS_TEST_TMPDIR/r.csv" | tr , ' '); do
		sed -n '/^## CSV/,/^## /p' "$TOP/orchestrator/report/REPORT.md" | grep -q "\`$key\`" || { echo "not documented: $key"; return 1; }
	done
}

@test "report: a run says where its pictures are" {
	run -0 "$FETTLE" resume 1 -q -s fake --fake "$BATS_FILE_TMPDIR/truth.json"
	[[ $output == *"report: $FETTLE_WORKSPACE/reports/campaign-1.md   (with pictures: campaign-1.html)"* ]]
}

@test "report: what a run leaves in reports/ is what the command prints" {
	"$FETTLE" report 1 | cmp - "$FETTLE_WORKSPACE/reports/campaign-1.md"
	"$FETTLE" report 1 --json | cmp - "$FETTLE_WORKSPACE/reports/campaign-1.json"
}

@test "report: a page that is valid HTML and fetches nothing" {
	"$FETTLE" report --format html >"$BATS_TEST_TMPDIR/r.html"
	"$FETTLE" report --format html -o "$FETTLE_WORKSPACE/reports/r.html"
	cmp "$FETTLE_WORKSPACE/reports/r.html" "$FETTLE_WORKSPACE/reports/campaign-1.html"
	tidy -q -e "$BATS_TEST_TMPDIR/r.html"
	run ! grep -E '(src|href)="?[^"#]|<script|@import|url\(' "$BATS_TEST_TMPDIR/r.html"
	[ "$(grep -c '<h2>[1-5]\. ' "$BATS_TEST_TMPDIR/r.html")" -eq 5 ]
	grep -q '<strong>accepted</strong>' "$BATS_TEST_TMPDIR/r.html"
	# the way to the fix, all effects, the pairs of each validation and of the final stage, when
	[ "$(grep -c '<figure' "$BATS_TEST_TMPDIR/r.html")" -ge 5 ]
	[ "$(grep -c 'role="img" aria-label="[A-Z]' "$BATS_TEST_TMPDIR/r.html")" -ge 5 ]
	grep -q 'No trial ran under the profiler' "$BATS_TEST_TMPDIR/r.html"
}

@test "report -o: the old file stays when the new one cannot be written" {
	"$FETTLE" report -o "$BATS_TEST_TMPDIR/r.md"
	"$FETTLE" report | cmp - "$BATS_TEST_TMPDIR/r.md"
	[ "$(stat -c %a "$BATS_TEST_TMPDIR/r.md")" = 600 ]
	run "$FETTLE" report -o "$BATS_TEST_TMPDIR/no/such/r.md"
	[ "$status" -eq 4 ]
	run sh -c '"$FETTLE" report >/dev/full'
	[ "$status" -eq 4 ]
}

@test "report -o: a full disk or a directory that cannot be written leaves the old file" {
	small=$BATS_TEST_TMPDIR/small
	mkdir "$small"
	mount -t tmpfs -o size=100k tmpfs "$small"
	"$FETTLE" report -o "$small/r.md"
	cp "$small/r.md" "$BATS_TEST_TMPDIR/before"
	head -c 1m /dev/zero >"$small/fill" 2>/dev/null || true
	run "$FETTLE" report --format html -o "$small/r.md"
	full=$status said=$output
	mount -o remount,ro "$small"
	run "$FETTLE" report --format html -o "$small/r.md"
	cmp "$small/r.md" "$BATS_TEST_TMPDIR/before"
	umount "$small"
	[ "$full" -eq 4 ]
	[[ $said == *"cannot write $small/r.md: No space left on device"* ]]
	[ "$status" -eq 4 ]
	[[ $output == *'Read-only file system'* ]]
}

# $1: a workspace; each format of its only campaign, and what is not known is never written as a number
every_format() {
	for format in markdown html json csv; do
		"$FETTLE" report --format $format -w "$1" >"$BATS_TEST_TMPDIR/$format"
		run ! grep -nwiE '[-+]?nan|[-+]?inf' "$BATS_TEST_TMPDIR/$format"
	done
	tidy -q -e "$BATS_TEST_TMPDIR/html"
	jq -e . "$BATS_TEST_TMPDIR/json" >/dev/null
	"$FETTLE" report --all -o "$BATS_TEST_TMPDIR/site" "$1"
	tidy -q -e "$BATS_TEST_TMPDIR/site/index.html"
}

@test "report: a campaign that runs, and one that was stopped before it had a baseline" {
	cp -a "$FETTLE_WORKSPACE" "$BATS_TEST_TMPDIR/running"
	sqlite3 "$BATS_TEST_TMPDIR/running/fettle.db" "UPDATE campaign SET state = 'running', ended_us = 0;
		UPDATE stage SET open = 1 WHERE kind IN ('screen', 'confirm'); DELETE FROM fix"
	every_format "$BATS_TEST_TMPDIR/running"
	grep -q 'still open' "$BATS_TEST_TMPDIR/markdown"
	grep -q 'running' "$BATS_TEST_TMPDIR/site/index.html"
	sed 's/mode = "quick",/mode = "quick", budget = { trials = 2 },/' "$BATS_FILE_TMPDIR/c.lua" >"$BATS_TEST_TMPDIR/c.lua"
	run "$FETTLE" run --anyway "$BATS_TEST_TMPDIR/c.lua" -s fake -q --fake "$BATS_FILE_TMPDIR/truth.json" -w "$BATS_TEST_TMPDIR/stopped"
	[ "$status" -eq 3 ]
	every_format "$BATS_TEST_TMPDIR/stopped"
	grep -q 'Not reached' "$BATS_TEST_TMPDIR/markdown"
	grep -q 'nothing yet (0 tested)' "$BATS_TEST_TMPDIR/site/index.html"
}

@test "report: every trial failed" {
	echo '{"faults":{"failed_trial":1}}' >"$BATS_TEST_TMPDIR/truth.json"
	run "$FETTLE" run "$BATS_FILE_TMPDIR/c.lua" -s fake -q --fake "$BATS_TEST_TMPDIR/truth.json" -w "$BATS_TEST_TMPDIR/ws"
	[ "$status" -eq 4 ]
	every_format "$BATS_TEST_TMPDIR/ws"
	jq -e '.campaign.state == "failed" and .baseline.mean == null and (.faults | length > 0)' "$BATS_TEST_TMPDIR/json"
	jq -e '.campaigns[0] | .state == "failed" and .noise == null and .est == null' "$BATS_TEST_TMPDIR/site/index.json"
}

@test "report: raw logs become links from a file, while they are there" {
	cp -a "$FETTLE_WORKSPACE" "$BATS_TEST_TMPDIR/ws"
	mkdir "$BATS_TEST_TMPDIR/r"
	"$FETTLE" report --format html -w "$BATS_TEST_TMPDIR/ws" -o "$BATS_TEST_TMPDIR/r/r.html"
	grep -oE 'href="\.\./ws/blocks/[^"]*"' "$BATS_TEST_TMPDIR/r/r.html" | cut -d'"' -f2 | sort -u >"$BATS_TEST_TMPDIR/links"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/links")" -ge 3 ]
	while read -r link; do [ -d "$BATS_TEST_TMPDIR/r/$link" ]; done <"$BATS_TEST_TMPDIR/links"
	rm -r "$BATS_TEST_TMPDIR/r/$(head -1 "$BATS_TEST_TMPDIR/links")"
	"$FETTLE" report --format html -w "$BATS_TEST_TMPDIR/ws" -o "$BATS_TEST_TMPDIR/r/r.html"
	run ! grep -F "\"$(head -1 "$BATS_TEST_TMPDIR/links")\"" "$BATS_TEST_TMPDIR/r/r.html"
	grep -q 'Without a link: gone' "$BATS_TEST_TMPDIR/r/r.html"
	rm -r "$BATS_TEST_TMPDIR/ws/blocks"
	every_format "$BATS_TEST_TMPDIR/ws"
	"$FETTLE" report --format html -w "$BATS_TEST_TMPDIR/ws" -o "$BATS_TEST_TMPDIR/r/r.html"
	grep -q 'They are gone' "$BATS_TEST_TMPDIR/r/r.html"
	run ! grep 'href="[^#]' "$BATS_TEST_TMPDIR/r/r.html"
}

@test "report: unknown format, campaign and workspace say what there is" {
	run "$FETTLE" report --format rtf
	[ "$status" -eq 2 ]
	[[ $output == *'csv, html, json, markdown'* ]]
	run "$FETTLE" report 99
	[ "$status" -eq 4 ]
	run "$FETTLE" report nosuch
	[ "$status" -eq 4 ]
	[[ $output == *'no campaign called nosuch'* ]]
	run "$FETTLE" report -w "$BATS_TEST_TMPDIR/none"
	[ "$status" -eq 4 ]
	[[ $output == *'no workspace here'* ]]
}

@test "recommend: the env file gives a shell the value that was measured" {
	"$FETTLE" recommend -o "$BATS_TEST_TMPDIR/fix.env"
	run sh -c 'set -a; . "$1"; set +a; printenv SMALL_GOOD' sh "$BATS_TEST_TMPDIR/fix.env"
	[ "$output" = "it's \$HOME" ]
	grep -q '^# configuration: good=' "$BATS_TEST_TMPDIR/fix.env"
	grep -q '^# holds for: unknown$' "$BATS_TEST_TMPDIR/fix.env" # scheduler fake runs on no machine
}

@test "recommend: the sbatch script is bash, options first" {
	"$FETTLE" recommend small --as sbatch >"$BATS_TEST_TMPDIR/job.sh"
	bash -n "$BATS_TEST_TMPDIR/job.sh"
	[ "$(head -1 "$BATS_TEST_TMPDIR/job.sh")" = '#!/bin/bash' ]
	[ "$(sed '0,/^[^#]/d' "$BATS_TEST_TMPDIR/job.sh" | grep -c '^#SBATCH')" -eq 0 ]
	bash "$BATS_TEST_TMPDIR/job.sh"
}

@test "recommend: JSON, documented; an unknown form is status 2" {
	"$FETTLE" recommend --json >"$BATS_TEST_TMPDIR/fix.json"
	[ "$(jq -r .format "$BATS_TEST_TMPDIR/fix.json")" = fettle.recommend/1 ]
	[ "$(jq -r .env.SMALL_GOOD "$BATS_TEST_TMPDIR/fix.json")" = "it's \$HOME" ]
	documented "$BATS_TEST_TMPDIR/fix.json" 'del(.settings, .env, .fingerprint)'
	run "$FETTLE" recommend --as enf
	[ "$status" -eq 2 ]
	[[ $output == *'did you mean "env"'* ]]
}

@test "recommend: status 4 and what to do when there is no fix" {
	echo '{"effects":{"SMALL_GOOD=":-0.3,"SMALL_BAD=":-0.3},"sd_run":0.01,"sd_alloc":0.01}' \
		>"$BATS_TEST_TMPDIR/truth.json"
	# nothing helps, so the target is missed: a measured, negative answer
	run env FETTLE_WORKSPACE="$BATS_TEST_TMPDIR/ws" "$FETTLE" run "$BATS_FILE_TMPDIR/c.lua" -s fake -q \
		--fake "$BATS_TEST_TMPDIR/truth.json"
	[ "$status" -eq 1 ]
	[[ $output == *'Target: 120 samples/s is missed'* ]]
	run env FETTLE_WORKSPACE="$BATS_TEST_TMPDIR/ws" "$FETTLE" recommend
	[ "$status" -eq 4 ]
	[[ $output == *'the default configuration stays'* ]]
}

@test "knobs: a knob that only the campaign knows shows its verdicts" {
	run "$FETTLE" knobs explain good
	[ "$status" -eq 0 ]
	[[ $output == *'in this workspace: '*' tested, 1 accepted'* ]]
	[[ $output == *'campaign 1 small: (not set) -> it'*'accepted, +'* ]]
}

@test "a site tells once what an hour of a GPU costs" {
	cd "$BATS_TEST_TMPDIR" || return 1
	echo 'return { defaults = { budget = { gpu_hour_price = 360000 } } }' >site.lua
	cat >c.lua <<-'END'
		return {
			name = "priced", workload = { command = { "true" } }, resources = { gpus_per_node = 2 },
			objective = "trial_wall_s", blocks = { aa = 2, final = 0 }, warmup_trials = 0, mode = "quick",
		}
	END
	FETTLE_SITE=$PWD/site.lua "$FETTLE" run c.lua -w ws
	paid=$(sed -n 's/.* GPU-hours that cost \([0-9.]*\);.*/\1/p' ws/reports/campaign-1.md)
	# two GPUs at 100 a second each, for as long as the allocations lasted
	spent=$(sqlite3 ws/fettle.db "SELECT 200 * sum(wall_s) FROM v_allocation")
	awk -v a="$paid" -v b="$spent" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 0.01) }'
}
