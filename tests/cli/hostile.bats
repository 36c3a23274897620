#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# One text that quotes, marks up, escapes, calls, climbs and never ends, in every place where a text of others can be
# (values, command, environment, question; in the store: names, nodes, reasons, log lines, labels, events), through
# every output. It is text there, and nothing of it acts. Outlets of regressions: outlets.bats.
bats_require_minimum_version 1.5.0

setup() {
	FETTLE=${FETTLE:-$BATS_TEST_DIRNAME/../../build/release/fettle}
	cd "$BATS_TEST_TMPDIR" || exit 1
	printf '%s' "'\"><script>alert(1)</script>\$(touch acted)\`touch acted\`;touch acted;../../x %n%s " >evil
	printf '\033[31m\033]0;x\a\nBcc: x\r\342\200\256\302\233| =1+1 ' >>evil
	head -c 300 /dev/zero | tr '\0' x >>evil
	E="CAST(readfile('evil') AS TEXT)"
	LUA=$(od -An -v -tu1 -w1 evil | sed 's/ */\\/' | tr -d '\n')
	jq -n --rawfile evil evil '{fixed: true, sd_run: 0.001, effects: {("A=" + $evil): 0.06}}' >truth.json
	cat >c.lua <<-END
		local evil = "$LUA"
		return {
			name = "hostile",
			question = evil,
			workload = {
				command = { "true", evil },
				env = { EVIL = evil },
				window = { warmup_steps = 1, steps = 3 },
				metrics = { file = true },
			},
			objective = "throughput_samples_per_s",
			knobs = {
				{ name = "A", env = "A", class = "neutral", values = { evil } },
				{ name = "B", arg = "--b", class = "neutral", values = { evil } },
			},
			scheduler = "fake",
			mode = "quick",
			rounds = 1,
			blocks = { aa = 2, final = 3, soak = 1 },
			warmup_trials = 0,
			seed = 1,
		}
	END
}

# FILE...: nothing that a terminal or a reader obeys, and no markup
harmless() {
	for f; do
		[ -s "$f" ] || { echo "$f is empty" && return 1; }
		[ "$(LC_ALL=C tr -dc '\000-\010\013-\037\177' <"$f" | wc -c)" -eq 0 ] || { echo "$f: control characters" && return 1; }
		! LC_ALL=C grep -q $'\302[\200-\237]' "$f" || { echo "$f: control characters of C1" && return 1; }
		! LC_ALL=C grep -q $'\342\200\256' "$f" || { echo "$f: turns its reader round" && return 1; }
		! grep -q '^Bcc' "$f" || { echo "$f: a line of its own" && return 1; }
	done
	[ -z "$(find . -name acted)" ]
}

told() {
	"$FETTLE" check c.lua >told.check 2>&1
	"$FETTLE" check --effective c.lua >told.effective 2>&1
	"$FETTLE" plan c.lua >told.plan 2>&1
	"$FETTLE" status -w ws >told.list 2>&1
	"$FETTLE" status -w ws 1 >told.status 2>&1
	"$FETTLE" nodes -w ws >told.nodes 2>&1 || true
	for format in markdown html csv; do "$FETTLE" report -w ws --format=$format 1 >told.$format; done
	"$FETTLE" report -w ws --json 1 >told.json
	"$FETTLE" status -w ws --json 1 >told.status.json
}

@test "a hostile text in a campaign and in its store is text in every output" {
	"$FETTLE" run -s fake --fake truth.json -w ws c.lua >told.run 2>&1
	grep -q 'validated' told.run
	told
	harmless told.* ws/reports/campaign-1.*
	sqlite3 ws/fettle.db "
		UPDATE campaign SET name = $E, reason = $E, user = $E;
		UPDATE attempt SET reason = $E;
		UPDATE trial SET reason = $E, node = $E, log_path = $E WHERE id % 2;
		UPDATE event SET text = $E, kind = $E WHERE id % 2;
		UPDATE hypothesis SET reason = $E, evidence = $E, knob = $E WHERE knob = 'B';
		UPDATE metric_def SET unit = $E, summary = $E;
		UPDATE allocation_node SET node = $E WHERE node = (SELECT min(node) FROM allocation_node)"
	[ "$(sqlite3 ws/fettle.db "SELECT count(*) FROM event WHERE text = $E")" -ge 1 ]
	told
	harmless told.*
	jq -e . told.json told.status.json >told.parsed
	run ! grep -q '<script' told.html # in Markdown it stands within code, or is escaped
	grep -q '&lt;script&gt;alert(1)' told.html
	/usr/bin/python3 - <<-'END'
		import csv
		rows = list(csv.reader(open("told.csv", newline="")))
		assert len(rows) > 2 and len({len(r) for r in rows}) == 1, {len(r) for r in rows}
		assert not [c for r in rows for c in r if c[:1] in "=@+"  and c[:1]]
	END
}

@test "a hostile value that was accepted reaches the job as it is, whatever shell reads it" {
	"$FETTLE" run -q -s fake --fake truth.json -w ws c.lua >told.run 2>&1
	for as in env sbatch json; do "$FETTLE" recommend -w ws --as $as 1 >told.$as; done
	harmless told.json
	for as in env sbatch; do
		for sh in sh bash; do
			rm -f got
			(sed '/^exec /,$d' told.$as && printf '%s\n' 'export A; printenv A >got') | A='' timeout 10 "$sh" >/dev/null 2>&1 || true
			printf '%s\n' "$(cat evil)" | cmp - got
		done
	done
	[ -z "$(find . -name acted)" ]
}
