#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The version of this source: the file VERSION of a release archive, else what git says.
if [ -f VERSION ]; then
	cat VERSION
	exit
fi
v=$(git describe --tags --always --dirty 2>/dev/null) || v=unknown
case $v in
v[0-9]*) echo "${v#v}" ;;
[0-9]*.*) echo "$v" ;;
*) echo "0.0.0-g$v" ;;
esac
