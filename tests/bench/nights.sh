#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# nights.sh: what looking at series costs on a database of a year with 200 series: of each command the quickest of
# ten calls, in milliseconds with the start of the program, and the sizes of database and page.
FETTLE=${FETTLE:-build/fettle}
NIGHTS=${FETTLE_BUILD:-build/release}/tests/bench/nights
tmp=$(mktemp -d) || exit 4
trap 'rm -rf "$tmp"' EXIT

"$NIGHTS" "$tmp/ws" 200 365 || exit
# $@: a command; its quickest call
quickest() {
	best=
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		from=$(date +%s%N)
		"$FETTLE" "$@" -w "$tmp/ws" >/dev/null # 1 while a regression is open
		took=$((($(date +%s%N) - from) / 10000))
		[ -n "$best" ] && [ "$best" -le "$took" ] || best=$took
	done
	printf '%-36s %4d.%02d ms\n' "fettle $*" $((best / 100)) $((best % 100))
}
quickest history
quickest history 1
quickest history --html -
quickest regressions
quickest regressions --all
quickest regressions show 1
"$FETTLE" history --html "$tmp/page.html" -w "$tmp/ws"
printf 'database %s bytes, page %s bytes\n' "$(stat -c %s "$tmp/ws/fettle.db")" "$(stat -c %s "$tmp/page.html")"
