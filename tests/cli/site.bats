#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# report --all: the index, its folder and its refresh; what a page may hold, whatever names and logs do. With LONG=1 a
# browser opens it from the file, sorts, searches, and follows the links.
bats_require_minimum_version 1.5.0

setup_file() {
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	SHARED=$(mktemp -d /dev/shm/fettle-site-XXXXXX) # campaigns of no time wait for nothing but the disk
	export TOP SHARED
	cd "$SHARED" || exit 1
	# a question that would script a page and act on a terminal, values that are formulas; the name as somebody else's
	# database may have it
	cat >hostile.lua <<-'END'
		return {
			name = "hostile",
			question = "<img src=x onerror=\"document.title='hit'\"> ]]> --> `code` | **bold** \27]0;hit\7 ?",
			workload = {
				command = { "true", "</pre><script>document.title='hit'</script>" },
				workdir = "/",
				window = { warmup_steps = 5, steps = 20 },
				metrics = { file = true },
			},
			objective = "throughput_samples_per_s",
			knobs = {
				{ name = "good", env = "SMALL_GOOD", values = { "=cmd|'/C calc'!A0<script>" }, class = "neutral" },
				{ name = "bad", env = "SMALL_BAD", values = { 1 }, class = "neutral" },
			},
			resources = { gpus_per_node = 8 },
			mode = "quick",
			rounds = 2,
			blocks = { aa = 3, final = 4, soak = 3 },
		}
	END
	sed 's/name = "hostile"/name = "plain"/; s/question = .*/question = "Does it help?",/' hostile.lua >plain.lua
	echo '{"effects":{"SMALL_GOOD=":0.3,"SMALL_BAD=":-0.3},"sd_run":0.01,"sd_alloc":0.01}' >up.json
	echo '{"effects":{"SMALL_GOOD=":-0.3,"SMALL_BAD=":-0.3},"sd_run":0.01,"sd_alloc":0.01}' >down.json
	"$FETTLE" run plain.lua -s fake -q --fake up.json -w team/ws
	"$FETTLE" run plain.lua -s fake -q --fake down.json -w team/ws
	"$FETTLE" run hostile.lua -s fake -q --fake up.json -w team/ws
	sqlite3 team/ws/fettle.db "UPDATE campaign SET name = '</script><script>document.title=''hit''</script>\"''&' || char(27, 91, 51, 49,
		109, 8238) || printf('%.240c', 'x') WHERE id = 3; UPDATE hypothesis SET reason = '</td><script>alert(1)</script>' ||
		char(27) || '[2J' WHERE campaign = 3"
	"${FETTLE_BUILD:-$TOP/build/release}/tests/bench/nights" other/ws
	umask 027
	"$FETTLE" report --all -o site team/ws other/ws >said
}

teardown_file() { rm -rf "$SHARED"; }

setup() { cd "$SHARED" || return 1; }

# All that is in a folder: names, times to the nanosecond, bytes.
state_of() { find "$1" -mindepth 1 -printf '%P %T@ %m\n' | sort; find "$1" -type f -exec md5sum {} + | sort; }

@test "report --all: an index of the campaigns of two workspaces, newest first" {
	grep -q "site/index.html: 3 campaigns of 2 workspaces; 15 files written, 0 removed" said
	[ "$(find site -type f ! -name '.*' | wc -l)" -eq 15 ]
	[ -z "$(find site -name '.new*')" ]
	grep -oE 'href="[^"]*"' site/index.html | cut -d'"' -f2 | sort -u >links
	while read -r link; do [ -e "site/$link" ] || { echo "leads nowhere: $link"; return 1; }; done <links
	grep -qx 'ws/campaign-1.html' links
	grep -qx 'ws-2/nights.html' links # both workspaces are called ws
	grep -qx '../team/ws/' links
	[ "$(grep -o 'class="name" href="[^"]*"' site/index.html | cut -d'"' -f4 | tr '\n' ' ')" = \
		"ws/campaign-3.html ws/campaign-2.html ws/campaign-1.html " ]
	grep -q '3 campaigns' site/index.html
	grep -q '2 with a validated gain' site/index.html
	grep -q 'the default stays' site/index.html
	jq -e '.campaigns | map(.result) == ["fix", "default", "fix"] and (.[2] | .est > 0.2 and .lo < .est and .est < .hi
		and .runs > 10 and .gpu_hours > .node_hours and .noise > 0)' site/index.json
	jq -e '.workspaces | map([.campaigns, .series > 0]) == [[3, false], [0, true]]' site/index.json
	for key in $(jq -r 'del(.campaigns[].pages) | [paths | map(select(type == "string")) | last] | unique | .[]' site/index.json); do
		sed -n '/^## fettle.index/,/^## /p' "$TOP/orchestrator/report/REPORT.md" | grep -q "\`$key\`" ||
			{ echo "not documented: $key"; return 1; }
	done
}

@test "report --all: pages are valid, fetch nothing, and run no script but the one that the policy names" {
	tidy -q -e site/index.html site/ws/campaign-1.html site/ws/campaign-3.html
	run ! grep -nE '(src|srcset|action|poster|data)="|@import|url\(|<(iframe|object|embed|link|base|form)' site/index.html site/ws/*.html
	grep -ohE 'href="[^"]*"' site/index.html site/ws/*.html | run ! grep -E '"(//|[a-z]+:)'
	[ "$(grep -c '<script' site/index.html)" -eq 1 ]
	run ! grep -l '<script' site/ws/campaign-1.html site/ws/campaign-2.html site/ws/campaign-3.html site/ws-2/nights.html
	hash=$(sed -n '/<script>/,/<\/script>/p' site/index.html | sed '1s/.*<script>//; s/<\/script>.*//' |
		head -c -1 | openssl dgst -sha256 -binary | base64)
	grep -q "script-src 'sha256-$hash'" site/index.html
	for page in site/index.html site/ws/campaign-1.html site/ws-2/nights.html; do
		grep -q "Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'" $page
	done
}

@test "report --all: whatever names and values hold, in every format and on the terminal" {
	{ "$FETTLE" status -w team/ws; "$FETTLE" report 3 -w team/ws; "$FETTLE" knobs -w team/ws; cat said; } >terminal 2>&1
	run -2 "$FETTLE" run -w x "$(printf 'bad\e[31m\u202e.lua')"
	echo "$output" >>terminal
	# no control character but the newline, no mark that turns the direction of reading
	run ! grep -laP '[\x00-\x09\x0b-\x1f\x7f]|\xe2\x80[\xaa-\xae]' terminal site/index.html \
		site/ws/*.html site/ws/*.md site/ws/*.csv
	run ! grep -laP '[\x00-\x08\x0b-\x1f\x7f]' site/index.json site/ws/*.json
	run ! grep -nE "<(script>(document|alert)|img|/pre><)" site/ws/campaign-3.html site/index.html
	# a backslash before each, but in what is code to Markdown, where no HTML is
	sed 's/`[^`]*`//g; /^    /d' site/ws/campaign-3.md >text
	grep -q '\\<img src=x' text
	run ! grep -nE "(^|[^\\])(<script|<img|</td)" text
	grep -q '&lt;/script&gt;&lt;script&gt;document.title=&#39;hit&#39;&lt;/script&gt;&quot;&#39;&amp;\\x1b\[31m' site/index.html
	jq -e '.campaign.name | startswith("</script>")' site/ws/campaign-3.json
	jq -e '.campaigns[0].name | startswith("</script>")' site/index.json
	sqlite3 :memory: ".import --csv site/ws/campaign-3.csv t" ".mode list" \
		"SELECT DISTINCT \"to\" FROM t WHERE knob = 'good'" >values
	[ "$(cat values)" = "'=cmd|'/C calc'!A0<script>" ]
}

@test "report --all: the umask says who may read it" {
	[ "$(find site -type f -printf '%m\n' | sort -u)" = 640 ]
	[ "$(find site -type d -printf '%m\n' | sort -u)" = 750 ]
}

@test "report --all: what is unchanged is not written, what is gone is removed, what is not ours stays" {
	cp -a site again
	state_of again >before
	umask 027
	run -0 "$FETTLE" report --all -o again team/ws other/ws
	[[ $output == *'0 files written, 0 removed'* ]]
	state_of again | diff before -
	# by others in the same folder
	echo mine >again/notes.txt
	echo mine >again/ws/campaign-9.html
	run -0 "$FETTLE" report --all -o again other/ws
	[[ $output == *'0 campaigns of 1 workspace; 3 files written, 13 removed'* ]]
	[ "$(find again -type f ! -name '.*' | sort | tr '\n' ' ')" = \
		"again/index.html again/index.json again/notes.txt again/ws/campaign-9.html again/ws/nights.html " ]
	# a page of ours would come where that one is
	sqlite3 team/ws/fettle.db 'SELECT 1' >/dev/null
	mv again/ws/campaign-9.html again/ws/campaign-1.html
	state_of again >before
	run -2 "$FETTLE" report --all -o again team/ws
	[[ $output == *'again/ws/campaign-1.html is there, and fettle did not write it: give a folder of its own'* ]]
	state_of again | diff before -
}

@test "report --all: a list that names files outside of the folder removes none of them" {
	cp -a site trap
	mkdir victim trap/real
	touch victim/campaign-7.html precious
	ln -s ../victim trap/link
	printf '%s\n' ../precious "$SHARED/precious" link/campaign-7.html real/../../precious .. . >>trap/.files
	"$FETTLE" report --all -o trap team/ws other/ws
	[ -e victim/campaign-7.html ]
	[ -e precious ]
	echo 'something else' >trap/.files
	run -2 "$FETTLE" report --all -o trap team/ws
	[[ $output == *'none of ours'* ]]
}

@test "report --all: a full disk or a folder that cannot be written leaves the old one whole" {
	mkdir small
	mount -t tmpfs -o size=600k tmpfs small
	"$FETTLE" report --all -o small/site team/ws
	state_of small/site >before
	cp -a team more
	"$FETTLE" run plain.lua -s fake -q --fake up.json -w more/ws
	head -c 1m /dev/zero >small/fill 2>/dev/null || true
	run -4 "$FETTLE" report --all -o small/site more/ws other/ws
	[[ $output == *'No space left on device'* ]]
	state_of small/site >after
	rm small/fill
	diff before after
	mount -o remount,ro small
	run -4 "$FETTLE" report --all -o small/site more/ws
	[[ $output == *'Read-only file system'* ]]
	state_of small/site | diff before -
	umount small
}

@test "report --all: a campaign whose log cannot be made is told of, and its old pages stay" {
	cp -a team broken
	sqlite3 broken/ws/fettle.db "UPDATE recipe_source SET text = 'return 1 +' WHERE campaign = 1"
	"$FETTLE" report --all -o mended team/ws
	mv broken/ws team/ws2 && mv team/ws team/ws1 && mv team/ws2 team/ws
	run "$FETTLE" report --all -o mended team/ws
	rm -r team/ws && mv team/ws1 team/ws
	[ "$status" -eq 2 ]
	[[ $output == *'3 campaigns of 1 workspace'* ]]
	[[ $output == *'1 campaign has no tuning log of now; campaign 1 (plain):'* ]]
	[ -e mended/ws/campaign-1.html ]
	grep -q 'There is no tuning log' mended/index.html
	jq -e '.campaigns[2] | .result == "unknown" and (.problem | length > 0) and .pages == {}' mended/index.json
}

@test "report --all: usage" {
	run -2 "$FETTLE" report --all
	[[ $output == *'-o DIR'* ]]
	run -2 "$FETTLE" report --all -o site --json
	run -2 "$FETTLE" report --all -o x team/ws team/ws
	[[ $output == *'given twice'* ]]
	[ ! -e x/index.html ]
	run -4 "$FETTLE" report --all -o x nowhere
	[[ $output == *'no workspace here'* ]]
	run -2 "$FETTLE" report 1 2
	mkdir none && run -0 "$FETTLE" report --all -o empty other/ws
	grep -q 'No campaign yet' empty/index.html
	tidy -q -e empty/index.html
}

# chromium of the distribution; what drives it, and the checkers, at the versions of tests/browser/package-lock.json
@test "LONG: a browser opens the index from its file, sorts, searches, follows the links; axe-core and vnu find nothing" {
	[ -n "${LONG:-}" ] || return 0
	modules=$(realpath -m "$TOP/${BUILD:-build}/browser")
	mkdir -p "$modules"
	cp "$TOP"/tests/browser/package*.json "$modules"
	(cd "$modules" && npm ci --ignore-scripts --no-audit --no-fund)
	java -jar "$modules/node_modules/vnu-jar/build/dist/vnu.jar" --errors-only site/index.html site/ws/campaign-1.html \
		site/ws/campaign-3.html site/ws-2/nights.html
	run node "$TOP/tests/browser/pages.mjs" "$modules" "$SHARED/site"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *'pages: fine'* ]]
}
