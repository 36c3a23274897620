#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# format.sh FILE... : fail on C sources that clang-format-14 would change (`make format` does it).
bad=0
for f in "$@"; do
	if ! clang-format-14 --style=file "$f" | cmp -s - "$f"; then
		line=$(clang-format-14 --style=file "$f" | diff "$f" - | sed -n '1s/[^0-9].*//p')
		echo "$f:$line: format: run \`make format\`"
		bad=1
	fi
done
exit $bad
