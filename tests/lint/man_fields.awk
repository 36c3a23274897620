# SPDX-License-Identifier: GPL-2.0-or-later
# man_fields.awk : a man page from its template and recipes/README.md, whose tables a test holds equal to the schema.
#
#	awk -f man_fields.awk recipes/README.md PAGE.5.in
#
# In the template `@section NAME` becomes that heading and what stands under it, its fields as a list, `@text NAME` the
# same without the heading, and `@lua FILE` the example that begins with that file's name. A name that is not there is
# an error.

# Inline Markdown as roff: `code` bold, links as their words, emphasis plain.
function inline(s,    out, i, n, part) {
	gsub(/\\/, "\\e", s)
	while (match(s, /\[[^][]*\]\([^()]*\)/)) {
		part = substr(s, RSTART + 1, RLENGTH - 1)
		sub(/\]\(.*/, "", part)
		s = substr(s, 1, RSTART - 1) part substr(s, RSTART + RLENGTH)
	}
	gsub(/\*\*/, "", s)
	while (match(s, /\*[a-z]+\*/))
		s = substr(s, 1, RSTART - 1) substr(s, RSTART + 1, RLENGTH - 2) substr(s, RSTART + RLENGTH)
	n = split(s, code, /`/)
	for (i = 1; i <= n; i++) {
		if (i % 2 == 0) {
			gsub(/-/, "\\-", code[i])
			code[i] = "\\fB" code[i] "\\fP"
		}
		out = out code[i]
	}
	return out
}

# Text, a line a sentence, of which none is taken for a request.
function text(s) {
	s = inline(s)
	sub(/ +$/, "", s)
	gsub(/[.] +/, ".\n", s)
	gsub(/\n[.]/, "\n\\\\\\&.", s)
	print (s ~ /^[.']/ ? "\\&" : "") s
}

function literal(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	print (s ~ /^[.']/ ? "\\&" : "") s
}

function sentence(s) {
	return s ~ /[.:]$/ ? s : s "."
}

# The cells of a row, from 1 on.
function cells(row) {
	sub(/^\| */, "", row)
	sub(/ *\|$/, "", row)
	return split(row, cell, / +\| +/)
}

function field(row) {
	gsub(/\|  \|/, "| - |", row)
	gsub(/\|  \|/, "| - |", row)
	if (cells(row) != 6) {
		print "man_fields.awk: not a row of six cells: " row >"/dev/stderr"
		failed = 1
	}
	gsub(/`/, "", cell[1])
	print ".It Ic " cell[1]
	text(cell[2] (cell[3] != "-" ? ", " cell[3] : "") (cell[4] == "required" ? "; required" : "; default: " cell[4]))
	print ".br"
	text(sentence(cell[5]))
	if (cell[6] != "-") {
		print ".br"
		text("Example: " cell[6])
	}
}

function other(row,    i, n) {
	n = cells(row)
	print ".It"
	for (i = 1; i <= n; i++)
		if (cell[i] != "")
			text((head[i] != "" ? head[i] ": " : "") cell[i] (i < n ? ";" : "."))
}

# What stands under a heading: paragraphs, tables, code.
function section(name,    i, row, mode, gap) {
	if (!(name in first)) {
		print "man_fields.awk: no section " name " in recipes/README.md" >"/dev/stderr"
		failed = 1
		return
	}
	for (i = first[name]; i <= last[name]; i++) {
		row = line[i]
		if (mode != "" && row !~ /^\|/ && mode != "lua") {
			print ".El"
			mode = ""
		}
		if (mode == "lua") {
			if (row ~ /^```/) {
				print ".Ed"
				mode = ""
				gap = 1
			} else
				literal(row)
		} else if (row ~ /^```/) {
			print ".Bd -literal -offset 2n"
			mode = "lua"
		} else if (row ~ /^\|[- |]+$/)
			continue
		else if (row ~ /^\| field \|/) {
			print ".Bl -tag -width Ds"
			mode = "field"
		} else if (row ~ /^\|/ && mode == "") {
			cells(row)
			for (n in head) delete head[n]
			for (n in cell) head[n] = cell[n]
			print ".Bl -dash -compact"
			mode = "other"
		} else if (row ~ /^\|/) {
			if (mode == "field") field(row)
			else other(row)
		} else if (row == "")
			gap = 1
		else if (row ~ /^    /) {
			print ".Dl " inline(substr(row, 5))
		} else {
			if (gap || row ~ /^- /) print ".Pp"
			gap = 0
			sub(/^- /, "", row)
			text(row)
		}
		if (row != "") gap = mode == "lua" ? gap : 0
	}
	if (mode != "") print ".El"
}

function lua(name,    i) {
	if (!(name in example)) {
		print "man_fields.awk: no example " name " in recipes/README.md" >"/dev/stderr"
		failed = 1
		return
	}
	print ".Bd -literal -offset 2n"
	for (i = example[name]; line[i] !~ /^```/; i++)
		literal(line[i])
	print ".Ed"
}

FNR == NR {
	line[NR] = $0
	if (/^```/) inside = !inside
	if (!inside && /^##+ /) {
		if (heading != "") last[heading] = NR - 1
		heading = $0
		sub(/^##+ /, "", heading)
		first[heading] = NR + 1
	}
	last[heading] = NR
	if (inside && /^-- [a-z\/_]+\.lua$/) example[$2] = NR
	next
}
/^@section / { print ".Ss " substr($0, 10); section(substr($0, 10)); next }
/^@text / { section(substr($0, 7)); next }
/^@lua / { lua($2); next }
{ print }
END { exit failed }
