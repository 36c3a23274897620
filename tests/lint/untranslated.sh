#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# untranslated.sh ALLOWED SOURCE... : words of documents that escape translation, as far as their look
# tells: a literal of two words, or one word in a call of doc.h, that neither stands in _(), N_(),
# P_() or _n() nor is the plain argument of a call that translates it (of `cond ? "a" : "b"` only the
# first is extracted: each wants its own _()). ALLOWED: words that are meant so, "file | words".
set -eu
allowed=$1
shift

# The words of an enum stand in the catalogues under the enum's name.
if grep -nE '(^|[^a-z])_\([a-z]+_[a-z_]*_name\(' "$@" | grep -v '_(report_'; then
	echo 'words of an enum: lang_word("ENUM", ENUM_name(x)), not _(ENUM_name(x))'
	exit 1
fi

found=$(for f; do
	sed 's|/\*.*\*/||; s|//.*||; /^[[:space:]]*\/\*/,/\*\//d; /^#/d' "$f" | awk -v file="$f" '
	function literal() { return "\"([^\"\\\\]|\\\\.)*\"" }
	{ text = text " " $0 }
	END {
		lit = literal()
		gsub("\"[ \t]+\"", "", text)
		gsub("(_|N_|STORED)\\([ \t]*" lit "\\)", "", text)
		gsub("P_\\([ \t]*" lit ",[ \t]*" lit "\\)", "", text)
		gsub("_n\\([ \t]*" lit ",[ \t]*" lit, "", text)
		gsub("lang_word\\([ \t]*" lit, "lang_word(", text)
		gsub("\\{" lit ",[ \t]*(true|false)\\}", "{}", text)
		gsub("doc_(say|str|printf|cell_printf)\\([ \t]*&?[a-z>-]+,[ \t]*" lit "[,)]", "doc_(", text)
		gsub("doc_title\\([ \t]*&?[a-z>-]+,[ \t]*[0-9],[ \t]*" lit "\\)", "doc_(", text)
		n = split(text, statement, ";")
		for (i = 1; i <= n; i++) {
			if (statement[i] !~ /(doc_|buf_|put|text|svg_|asprintf|snprintf|return|fact)[a-z_]*\(|return/) continue
			s = statement[i]
			while (match(s, lit)) {
				word = substr(s, RSTART + 1, RLENGTH - 2)
				s = substr(s, RSTART + RLENGTH)
				gsub(/<[^>]*>?/, " ", word)
				gsub(/[a-z-]+=\\"[^"\\]*(\\")?/, " ", word)
				gsub(/&[a-z#0-9]+;/, " ", word)
				gsub(/%[-+ #0-9.*]*[hlzjt]*[a-zA-Z]/, " ", word)
				gsub(/\\[a-z0-9]+/, " ", word)
				if (word ~ /[A-Za-z]+ +[a-z]+/ || (statement[i] ~ /doc_/ && word ~ /[A-Za-z][a-z][a-z][a-z]/ && word !~ /[_\/.]/))
					print file " | " word
			}
		}
	}'
done | sed 's/[[:space:]]*$//; s/|[[:space:]]*/| /' | grep -vxF -f "$allowed" || true)
[ -z "$found" ] && exit 0
echo "$found"
echo 'these words are in no catalogue: wrap them in _("..."), or list them in' "$allowed"
exit 1
