#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# hoist.sh FILE... : a comment behind code that makes its line longer than 100 columns goes above the
# line. clang-format would rather break the code. Part of `make format`.
for f in "$@"; do
	awk '
	function width(s,   i, w) {
		for (i = w = 0; i++ < length(s);)
			w = substr(s, i, 1) == "\t" ? w - w % 8 + 8 : w + 1
		return w
	}
	{
		at = index($0, "/*")
		code = substr($0, 1, at - 1)
		comment = substr($0, at)
		end = index(comment, "*/")
		indent = code
		sub(/[^\t].*/, "", indent)
		sub(/[ \t]+$/, "", code)
		if (at > 1 && code ~ /[^ \t]/ && code !~ /^[ \t]*[#*]/ && gsub(/"/, "\"", code) % 2 == 0 &&
		    end == length(comment) - 1 && width($0) > 100) {
			print indent comment
			print code
		} else
			print
	}' "$f" >"$f.hoist" && if cmp -s "$f" "$f.hoist"; then rm "$f.hoist"; else cat "$f.hoist" >"$f" && rm "$f.hoist"; fi
done
