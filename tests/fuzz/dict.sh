#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# dict.sh FILE... : a libFuzzer dictionary of the string literals of C sources. A parser's words are
# what its source compares with, so that its dictionary never falls behind it.
# dict.sh --sources NAME: the sources of the parser NAME: its own, what it includes of probes/, and the
# dialects that it calls.
export LC_ALL=C
if [ "$1" = --sources ]; then
	for own in "probes/probe_$2.c" "orchestrator/cmd/$2.c"; do
		[ -e "$own" ] || continue
		echo "$own"
		{
			sed -n 's,^#include "\(probes/[a-z_]*\)\.h"$,\1.c,p' "$own"
			grep -o '&train_[a-z_]*' "$own" | sed 's,&train_\(.*\),probes/probe_\1.c,'
		} | while read -r more; do [ ! -e "$more" ] || echo "$more"; done
	done
	exit
fi
sed -e '/^#include/d' -e '/^ \*/d' -e '/^\/\*/d' -e "s/'\\\\*\"'//g" "$@" | grep -o '"\([^"\\]\|\\.\)*"' |
	grep -v '\\[^"\\]' | grep '^".\{2,64\}"$' | sort -u
