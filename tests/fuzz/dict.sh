#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# dict.sh FILE... : a libFuzzer dictionary of the string literals of C sources. A parser's words are
# what its source compares with, so that its dictionary never falls behind it.
export LC_ALL=C
sed -e '/^#include/d' -e '/^ \*/d' -e '/^\/\*/d' -e "s/'\\\\*\"'//g" "$@" | grep -o '"\([^"\\]\|\\.\)*"' |
	grep -v '\\[^"\\]' | grep '^".\{2,64\}"$' | sort -u
