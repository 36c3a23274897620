#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# spdx.sh FILE... : every source says its licence in its first line (second after #!): MIT under
# recipes/, so that users may copy what is there, GPL-2.0-or-later elsewhere.
bad=0
for f in "$@"; do
	case $f in
	recipes/*) want=MIT ;;
	*) want=GPL-2.0-or-later ;;
	esac
	if ! head -n 2 "$f" | grep -Eq "SPDX-License-Identifier: $want( \*/)?\$"; then
		echo "$f: spdx: expected \"SPDX-License-Identifier: $want\" in the first line"
		bad=1
	fi
done
exit $bad
