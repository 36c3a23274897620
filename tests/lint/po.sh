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
formats=orchestrator/report/recorded_formats.c

# The words of the enums that are shown: those that a call of lang_word() names.
enum_words() {
	shown=$(cat "$@" | grep -o 'lang_word("[a-z_]*"' | sort -u | cut -d'"' -f2)
	cat "$@" | tr '\n' ' ' | grep -oE 'MODEL_WORDS\([^()]*\)' | while read -r words; do
		type=$(echo "$words" | sed 's/MODEL_WORDS(\([a-z_]*\),.*/\1/')
		echo "$shown" | grep -qx "$type" || continue
		echo "$words" | grep -oE '"[^"]*"' | sed "s/.*/NC_(\"$type\", &)/"
	done
}

# Titles of columns are {"title", true}: marked here, so that sources need not.
extract() {
	rm -rf "$dir" && mkdir -p "$dir/src"
	for f; do
		mkdir -p "$dir/src/${f%/*}"
		sed 's/{\("[^"][^"]*"\), *\(true\|false\)}/{COLUMN(\1), \2}/g' "$f" > "$dir/src/$f"
	done
	enum_words "$@" > "$dir/src/enums.c"
	(cd "$dir/src" && xgettext --from-code=UTF-8 -L C --no-wrap --sort-by-file --add-comments=tr: \
		--package-name=fettle -k -k_ -kN_ -kP_:1c,2 -kNC_:1c,2 -k_n:1,2 -kSTORED:1 -kCOLUMN:1 \
		-kdoc_title:3 -kdoc_say:2 -kdoc_str:2 -kdoc_printf:2 -kdoc_cell_printf:2 \
		--flag=_:1:pass-c-format --flag=N_:1:pass-c-format --flag=STORED:1:no-c-format \
		--flag=COLUMN:1:no-c-format --flag=doc_say:2:no-c-format --flag=doc_str:2:no-c-format \
		--flag=doc_title:3:no-c-format --flag=html_figure_begin:2:no-c-format \
		--flag=html_figure_begin:3:no-c-format --flag=html_figure_none:2:no-c-format \
		--flag=_n:1:pass-c-format --flag=_n:2:pass-c-format \
		--flag=doc_printf:2:c-format --flag=doc_cell_printf:2:c-format \
		--flag=buf_printf:2:c-format --flag=xasprintf:1:c-format \
		-o "$top/$pot" "$@" enums.c)
	# a date that changes with every run would be a conflict of every branch
	sed -i 's/charset=CHARSET/charset=UTF-8/; /^"POT-Creation-Date:/d' "$pot"
}

# Places are left out: they would change with every line that moves.
merge() { # CATALOGUE: on stdout, obsolete entries at its end
	msgmerge --quiet --no-fuzzy-matching --no-location --no-wrap "$1" "$pot" -o -
}

# What stands between the conversions of each format of stored sentences is somewhere in a source.
check_formats() {
	find orchestrator experiments recipes/rules \( -name '*.[ch]' -o -name '*.lua' \) ! -path "$formats" \
		-exec cat {} + | tr '\n' ' ' | sed 's/"[[:space:]]*\(\.\.\)*[[:space:]]*"//g' > "$dir/literals"
	sed -n 's/^\tSTORED("\(.*\)"),$/\1/p' "$formats" | sed 's/%%/\x01/g; s/%[-+ #0-9.]*[hlzj]*[a-zA-Z]/\n/g' |
		sed 's/\x01/%%/g; s/^[ ,;:.(]*//; s/[ ,;:.()]*$//; s/\\"//g' | grep '[a-z][a-z]' | sort -u > "$dir/segments"
	while read -r segment; do
		grep -qF -- "$segment" "$dir/literals" || { echo "$formats: no source says \"$segment\""; exit 1; }
	done < "$dir/segments"
}

extract "$@"
[ "$verb" = update ] || check_formats
for po in $catalogues; do
	if [ "$verb" = update ]; then
		merge "$po" | msgattrib --no-obsolete --no-wrap --no-location -o "$po.new" -
		mv "$po.new" "$po"
		continue
	fi
	msgcmp "$po" "$pot" || { echo "$po: \`make po\` adds what is missing; translate it"; exit 1; }
	dead=$(merge "$po" | grep '^#~ msgid' || true)
	if [ -n "$dead" ]; then
		printf '%s: no source has these texts (make po takes them out):\n%s\n' "$po" "$dead"
		exit 1
	fi
done
