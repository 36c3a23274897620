#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# banned.sh TABLE FILE... : fail on a call of a function of TABLE. One that is needed all the same is
# let through by a comment on its line or the one above: /* lint: allow NAME because ... */
table=$1
shift
exec awk -v table="$table" '
BEGIN {
	while ((getline l < table) > 0) {
		if (l ~ /^#/ || split(l, c, /[ \t]*[|][ \t]*/) < 3)
			continue
		where[c[1]] = c[2]
		instead[c[1]] = c[3]
	}
}
FNR == 1 { in_comment = 0; last = "" }
# The line without its comments and the insides of strings and characters.
function code(s,   out, c, two, quote) {
	out = quote = ""
	while (s != "") {
		c = substr(s, 1, 1); two = substr(s, 1, 2)
		if (in_comment) {
			if (two == "*/") { in_comment = 0; s = substr(s, 3) } else s = substr(s, 2)
		} else if (quote != "") {
			if (c == "\\") { s = substr(s, 3); continue }
			if (c == quote) { quote = ""; out = out c }
			s = substr(s, 2)
		} else if (two == "/*") { in_comment = 1; s = substr(s, 3)
		} else if (two == "//") { return out
		} else {
			if (c == "\"" || c == "\x27") quote = c
			out = out c
			s = substr(s, 2)
		}
	}
	return out
}
function inside(list,   i, n, p) {
	n = split(list, p, " ")
	for (i = 1; i <= n; i++)
		if (p[i] != "-" && index(FILENAME, p[i]) == 1)
			return 1
	return 0
}
{
	text = code($0)
	gsub(/->[A-Za-z0-9_]+/, " ", text) # members are not these functions
	gsub(/[.][A-Za-z_][A-Za-z0-9_]*/, " ", text)
	while (match(text, /[A-Za-z_][A-Za-z0-9_]*[ \t]*[(]/)) {
		name = substr(text, RSTART, RLENGTH - 1)
		gsub(/[ \t]/, "", name)
		text = substr(text, RSTART + RLENGTH)
		if (!(name in where) || inside(where[name]))
			continue
		if ((last " " $0) ~ ("lint: allow " name " because "))
			continue
		print FILENAME ":" FNR ": banned: " name "(); use " instead[name]
		bad = 1
	}
	last = $0
}
END { exit bad }' "$@"
