#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# deps.sh check|install|packages PURPOSE... : is everything of deps.txt that these purposes need installed?
# check names each missing thing with its Debian and its RHEL package; exit 2 if there is one.
# install installs them with apt-get if it may (root, or sudo without a password), else says the line
# that an administrator would type; exit 2. packages prints the Debian packages of all, there or not.
set -u
table=${DEPS_TABLE:-$(dirname "$0")/deps.txt}
verb=$1
shift
purposes=$*
CC=${CC:-cc}
PATH=$PATH:/usr/sbin:/sbin

rows() { # the table's rows for our purposes: kind name|debian|rhel
	awk -F'|' -v want="$purposes" '
	BEGIN { n = split(want, w, " ") }
	/^#/ || NF < 4 { next }
	{ m = split($4, f, " "); hit = 0
	  for (i = 1; i <= m; i++) for (j = 1; j <= n; j++) if (f[i] == w[j]) hit = 1
	  if (!hit) next
	  for (i = 1; i <= 3; i++) { gsub(/^[ \t]+|[ \t]+$/, "", $i) }
	  print $1 "|" $2 "|" $3 }' "$table"
}

cflags() {
	for names in 'lua5.4 lua' libRmath libpcre2-8 'blas-openblas openblas cblas'; do
		for n in $names; do pkg-config --cflags "$n" 2>/dev/null && break; done
	done | tr '\n' ' '
}

# Some headers (cmocka.h, pcre2.h) want others, or a macro, before them.
# shellcheck disable=SC2086 # flags is a list of words
compiles() {
	{
		printf '#include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h
		printf '#define %s\n' MATHLIB_STANDALONE 'PCRE2_CODE_UNIT_WIDTH 8'
		for h in "$@"; do printf '#include <%s>\n' "$h"; done
	} | $CC $flags -E -x c -o /dev/null - 2>/dev/null
}

# Without a compiler nothing is found: it is missing too, and the list must be whole at once.
linkable() {
	where=$($CC -print-file-name="$1" 2>/dev/null) && [ "$where" != "$1" ]
}

have() { # kind name
	case $1 in
	prog) command -v "$2" ;;
	header) compiles "$2" ;;
	static) [ "${AGENT_STATIC:-1}" = 0 ] || linkable "$2" ;;
	lib) linkable "$2" ;;
	file) [ -e "$2" ] ;;
	py) /usr/bin/python3 -c 'import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)' "$2" ;;
	rt) ls "$(clang-14 -print-resource-dir 2>/dev/null)"/lib/*/"$2"* ;;
	*) echo "deps.txt: unknown kind $1" >&2; exit 4 ;;
	esac >/dev/null 2>&1
}

missing() {
	flags=$(cflags)
	# One compiler start for all headers; only if that fails is each looked at.
	# shellcheck disable=SC2046 # header names have no blanks
	compiles $(rows | sed -n 's/^header \([^|]*\)|.*/\1/p') && all_headers=1 || all_headers=0
	rows | while IFS='|' read -r what debian rhel; do
		kind=${what%% *} name=${what#* }
		[ "$kind" = header ] && [ "$all_headers" = 1 ] && continue
		have "$kind" "$name" || echo "$name|$debian|$rhel"
	done
}

say() {
	echo "$1" | while IFS='|' read -r name debian rhel; do
		echo "missing: $name (Debian package: $debian; RHEL package: $rhel)" >&2
	done
}

if [ "$verb" = packages ]; then
	rows | cut -d'|' -f2 | LC_ALL=C sort -u
	exit
fi
list=$(missing)
[ -n "$list" ] || exit 0
packages=$(echo "$list" | cut -d'|' -f2 | LC_ALL=C sort -u | tr '\n' ' ')
packages=${packages% }

if [ "$verb" = check ]; then
	say "$list"
	echo "Ask for: apt-get install --no-install-recommends $packages" >&2
	exit 2
fi

if ! command -v apt-get >/dev/null; then
	say "$list"
	exit 2
fi
if [ "$(id -u)" = 0 ]; then
	as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
	as_root='sudo -n'
else
	say "$list"
	echo "Not root, and no sudo. Ask an administrator for: apt-get install --no-install-recommends $packages" >&2
	exit 2
fi
echo "installing (minutes, on a bare machine): $packages"
# shellcheck disable=SC2086 # both are lists of words
{
	$as_root apt-get update -q >/dev/null
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -q -y --no-install-recommends $packages >/dev/null
} || exit 2
list=$(missing)
[ -z "$list" ] && exit 0
say "$list"
exit 2
