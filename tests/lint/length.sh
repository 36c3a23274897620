#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# length.sh FILE... : fail on a C function of more than 100 lines or a file of more than 900. Prints
# the median and the 95th percentile of the product's functions: they should stay near 15 and 60.
export LC_ALL=C
function_max=100
file_max=900
bad=0
for f in "$@"; do
	n=$(wc -l <"$f")
	if [ "$n" -gt $file_max ]; then
		echo "$f: length: $n lines, at most $file_max"
		bad=1
	fi
done
c_files=$(printf '%s\n' "$@" | grep '\.[ch]$')
[ -n "$c_files" ] || exit $bad
# shellcheck disable=SC2086 # a list of our own file names
ctags -f - --languages=C --langmap=C:.c.h --c-kinds=f --fields=+ne --sort=no $c_files |
	awk -F'\t' -v max=$function_max '
	{
		line = end = 0
		for (i = 4; i <= NF; i++) {
			if ($i ~ /^line:/) line = substr($i, 6)
			if ($i ~ /^end:/) end = substr($i, 5)
		}
		if (!end)
			next
		n = end - line + 1
		if ($2 !~ /^tests\//) print n > "/dev/fd/3"
		if (n > max) { print $2 ":" line ": length: " $1 "() has " n " lines, at most " max; bad = 1 }
	}
	END { exit bad }' 3>"${TMPDIR:-/tmp}/fettle-length.$$" || bad=1
sort -n "${TMPDIR:-/tmp}/fettle-length.$$" |
	awk '{ v[NR] = $1 } END { if (NR) printf "functions: %d, median %d lines, 95th percentile %d, longest %d\n", NR,
		v[int((NR + 1) / 2)], v[int(NR * 0.95 + 0.5)], v[NR] }'
rm -f "${TMPDIR:-/tmp}/fettle-length.$$"
exit $bad
