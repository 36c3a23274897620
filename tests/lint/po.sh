#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# po.sh check|update DIR "PO..." SOURCE... : the catalogues of translations against the texts of the
# sources. check: each text is translated, none is fuzzy, none is there that the sources do not have.
# update: what is new goes into the catalogues untranslated, what is gone goes out. DIR: scratch.
set -eu
verb=$1 dir=$2 catalogues=$3
shift 3
top=$PWD
pot=$dir/fettle.pot

# Titles of columns are {"title", true}: marked here, so that sources need not.
extract() {
	rm -rf "$dir" && mkdir -p "$dir/src"
	for f; do
		mkdir -p "$dir/src/${f%/*}"
		sed 's/{\("[^"][^"]*"\), *\(true\|false\)}/{N_(\1), \2}/g' "$f" > "$dir/src/$f"
	done
	(cd "$dir/src" && xgettext --from-code=UTF-8 -L C --no-wrap --sort-by-file --add-comments=tr: \
		--package-name=fettle -k -k_ -kN_ -kP_:1c,2 -kNC_:1c,2 -k_n:1,2 \
		-kdoc_title:3 -kdoc_say:2 -kdoc_str:2 -kdoc_printf:2 -kdoc_cell_printf:2 \
		-khtml_figure_begin:2 -khtml_figure_begin:3 -khtml_figure_none:2 \
		--flag=_:1:pass-c-format --flag=N_:1:pass-c-format \
		--flag=_n:1:pass-c-format --flag=_n:2:pass-c-format \
		--flag=doc_printf:2:c-format --flag=doc_cell_printf:2:c-format \
		--flag=buf_printf:2:c-format --flag=xasprintf:1:c-format \
		-o "$top/$pot" "$@")
	# what has no letter outside of its conversions is the same in every language
	sed -i 's/charset=CHARSET/charset=UTF-8/' "$pot"
	msggrep --no-wrap -v -K -E -e '^([^a-zA-Z%]|%%|%[-+ #0-9.*$]*[hlzjt]*[a-zA-Z])*$' -o "$pot.words" "$pot"
	mv "$pot.words" "$pot"
}

# Places are left out: they would change with every line that moves.
merge() { # CATALOGUE: on stdout, obsolete entries at its end
	msgmerge --quiet --no-fuzzy-matching --no-location --no-wrap "$1" "$pot" -o -
}

extract "$@"
for po in $catalogues; do
	if [ "$verb" = update ]; then
		merge "$po" | msgattrib --no-obsolete --no-wrap --no-location -o "$po.new" -
		mv "$po.new" "$po"
		continue
	fi
	msgcmp "$po" "$pot" || { echo "$po: \`make po\` adds what is missing; translate it"; exit 1; }
	dead=$(merge "$po" | grep '^#~ msgid' || true)
	if [ -n "$dead" ] || grep -q '^#~' "$po"; then
		printf '%s: no source has these texts (`make po` takes them out):\n%s\n' "$po" "$dead"
		exit 1
	fi
done
