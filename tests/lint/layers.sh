#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# layers.sh RULES FILE... : fail on an #include that RULES does not allow.
rules=$1
shift
exec awk -v rules="$rules" '
function fill(list, a, from, to,   i) { for (i = from; i <= to; i++) list = list " " a[i]; return list }
BEGIN {
	while ((getline l < rules) > 0) {
		if (l ~ /^#/ || l == "")
			continue
		n = split(l, a, /[ \t]+/)
		if (l ~ /^!/) { # files, two blanks, what they must not include
			cut = index(l, "  ")
			deny_n++
			deny_who[deny_n] = substr(l, 2, cut - 2)
			deny_what[deny_n] = substr(l, cut + 2)
		} else if (l ~ /^</) {
			h = a[1]; gsub(/[<>]/, "", h)
			only[h] = fill("", a, 2, n)
		} else
			allow[a[1]] = fill("", a, 2, n)
	}
}
function ok(list, h,   i, n, p) {
	n = split(list, p, " ")
	for (i = 1; i <= n; i++)
		if (index(h, p[i]) == 1)
			return 1
	return 0
}
function unit(f,   u, best) {
	best = ""
	for (u in allow)
		if (index(f, u "/") == 1 && length(u) > length(best))
			best = u
	return best
}
function complain(text) { print FILENAME ":" FNR ": layer: " text; bad = 1 }
/^[ \t]*#[ \t]*include[ \t]*"/ {
	split($0, q, "\"")
	if (!ok(allow[unit(FILENAME)], q[2]))
		complain("must not include \"" q[2] "\"")
	for (i = 1; i <= deny_n; i++)
		if (ok(deny_who[i], FILENAME) && ok(deny_what[i], q[2]))
			complain("must not include \"" q[2] "\"")
}
/^[ \t]*#[ \t]*include[ \t]*</ {
	split($0, q, /[<>]/)
	for (h in only)
		if (index(q[2], h) == 1 && !ok(only[h], FILENAME))
			complain("only" only[h] " may include <" q[2] ">")
}
END { exit bad }' "$@"
