#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# whitespace.sh FILE... : fail on blanks at the end of a line, on a missing or doubled last newline, and
# on notes to self (they belong into an issue).
awk '
/[ \t\r]+$/ { print FILENAME ":" FNR ": whitespace: blanks at the end of the line"; bad = 1 }
/(^|[^A-Za-z])(TODO|FIXME|XXX)([^A-Za-z]|$)/ && FILENAME !~ /^tests\/lint\// && FILENAME !~ /lint[.]bats$/ {
	print FILENAME ":" FNR ": a note to self: do it, or file an issue"; bad = 1 }
END { exit bad }' "$@" || bad=1
for f in "$@"; do
	case $(tail -c 2 "$f" | od -An -c | tr -d ' ') in
	'\n\n') echo "$f: whitespace: empty line at the end"; bad=1 ;;
	*'\n' | '') ;;
	*) echo "$f: whitespace: no newline at the end"; bad=1 ;;
	esac
done
exit "${bad:-0}"
