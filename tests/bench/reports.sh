#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# reports.sh [CAMPAIGNS]: what reports and looks cost on a database of so many campaigns (10) of a hundred verdicts and ten
# thousand trials each, and the index over them and 50 small ones. Of each command the quickest of five calls with the
# start of the program, and sizes. The campaigns run through the engine on declared truths: about ten seconds each.
# WORKSPACE=DIR keeps the database, and goes on with it.
FETTLE=${FETTLE:-build/fettle}
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 4
trap 'rm -rf "$tmp"' EXIT
ws=${WORKSPACE:-$tmp/ws}

have() { sqlite3 "$ws/fettle.db" "SELECT count(*) FROM campaign WHERE name = '$1'" 2>/dev/null || echo 0; }

while [ "$(have large)" -lt "${1:-10}" ]; do
	"$FETTLE" run "$here/reports.lua" -q -s fake --fake "$here/reports.json" -w "$ws" >"$tmp/out" || { cat "$tmp/out"; exit 1; }
	echo "campaign $(have large): $(grep '^Cost' "$tmp/out")"
done

# $@: a command; its quickest call
quickest() {
	best=
	for _ in 1 2 3 4 5; do
		from=$(date +%s%N)
		"$FETTLE" "$@" -w "$ws" >/dev/null || exit 1
		took=$((($(date +%s%N) - from) / 10000))
		[ -n "$best" ] && [ "$best" -le "$took" ] || best=$took
	done
	printf '%-44s %5d.%02d ms\n' "fettle $(echo "$*" | sed "s|$tmp/||g")" $((best / 100)) $((best % 100))
}

echo "trials: $(sqlite3 "$ws/fettle.db" 'SELECT count(*) FROM trial'), database: $(stat -c %s "$ws/fettle.db") bytes"
quickest status
quickest status 1
for format in html markdown json csv; do
	quickest report 1 --format $format -o "$tmp/report"
	printf '%-44s %8d bytes\n' "" "$(stat -c %s "$tmp/report")"
done

sed 's/name = "large"/name = "small"/; s/for i = 1, 100/for i = 1, 4/; s/repeats = 13/repeats = 1/; s/rounds = 100/rounds = 1/' \
	"$here/reports.lua" >"$tmp/small.lua"
while [ "$(have small)" -lt 50 ]; do
	"$FETTLE" run "$tmp/small.lua" --anyway -q -s fake --fake "$here/reports.json" -w "$ws" >"$tmp/out" || { cat "$tmp/out"; exit 1; }
done
from=$(date +%s%N)
"$FETTLE" report --all -o "$tmp/site" -w "$ws"
printf '%-44s %5d ms\n' "the first time" $((($(date +%s%N) - from) / 1000000))
quickest report --all -o "$tmp/site"
printf '%-44s %8d bytes\n' "index.html" "$(stat -c %s "$tmp/site/index.html")"
