# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
# lib.sh : what the benchmarks share; they read it from the top of the tree. Each has a scratch directory $dir on the
# disk of the build (fsync on tmpfs costs nothing), and says a row of the table of `make bench` with row().
build=${FETTLE_BUILD:-$PWD/build/release}
# shellcheck disable=SC2034 # of those that read this
fettle=$build/fettle

scratch() { # NAME
	dir=$(mktemp -d "$build/$1.XXXXXX")
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 130' INT TERM
}

# timed NAME CMD... : a line "wall user system KiB" more in $dir/NAME; what it printed is in $dir/NAME.out
timed() {
	_name=$1
	shift
	"$build/tests/bench/probe_bench" run "$@" >"$dir/$_name.out" 2>"$dir/$_name.err" || {
		tail -n 20 "$dir/$_name.out" "$dir/$_name.err" >&2
		echo "failed: $*" >&2
		exit 1
	}
	tail -n 1 "$dir/$_name.err" >>"$dir/$_name"
}
wall_ms() { awk '{ print 1000 * $1 }' "$dir/$1"; } # NAME : a number a round
cpu_ms() { awk '{ print 1000 * ($2 + $3) }' "$dir/$1"; }
mib() { awk '{ print $4 / 1024 }' "$dir/$1"; }

# version PEER : "name version", or why it is absent. bin PEER : where its commands and its Python are, else nothing.
version() { sh tests/bench/peers.sh "$1" | sed -n 1p; }
bin() { sh tests/bench/peers.sh "$1" | sed -n 2p; }

# row WHAT UNIT FETTLE PEER NAME [GOAL...] : a row of the table. FETTLE and PEER: what it cost, a number a round, in turn;
# PEER empty: there is none, or NAME says why it is absent. Ratios are PEER / FETTLE, round by round. GOAL:
# "ratio>=15" or "fettle<=2", of the medians.
row() {
	_what=$1 _unit=$2 _fettle=$3 _peer=$4 _name=$5
	shift 5
	jq -nc --arg bench "$(basename "$0" .sh)" --arg what "$_what" --arg unit "$_unit" --arg fettle "$_fettle" --arg peer "$_peer" --arg name "$_name" \
		--args '
		def numbers: [splits("\\s+") | select(. != "") | tonumber];
		def median: sort | length as $n | if $n == 0 then null elif $n % 2 == 1 then .[$n / 2 | floor] else (.[$n / 2] + .[$n / 2 - 1]) / 2 end;
		($fettle | numbers) as $f | ($peer | numbers) as $p
		| {bench: $bench, what: $what, unit: $unit, fettle: $f, peer: $p, peer_name: $name,
			ratio: [range([($f | length), ($p | length)] | min) | select($f[.] > 0) | $p[.] / $f[.]]}
		| {fettle: (.fettle | median), ratio: (.ratio | median)} as $median
		| .goals = [$ARGS.positional[] | capture("^(?<of>fettle|ratio)(?<op>[<>]=)(?<limit>.*)$") | .limit |= tonumber
			| $median[.of] as $is
			| .met = if $is == null then null elif .op == "<=" then $is <= .limit else $is >= .limit end]' \
		"$@" >"$dir/row" || exit 1
	cat "$dir/row" >>"${BENCH_RESULTS:-/dev/null}"
	jq -r -f tests/bench/row.jq "$dir/row"
}
