#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# overhead.sh : what a trial costs in fettle, from one block's start to the next one's, ingest and
# database included, against a bare fork + exec + fsync measured before and after in the same place;
# whether it grows from the first to the last of 5,000 trials; and what the sampler beside a trial
# takes of a core at one sample a second. Fails above the limits below.
set -eu
cd "$(dirname "$0")/../.."
MAX_RATIO=3     # of the bare loop
MAX_GROWTH=1.25 # median block of the last tenth over that of the first: noise of a shared machine is 15 %
BARE_N=1000
MAX_SAMPLER_PCT=0.5 # of one core, at 1 Hz
SAMPLER_S=30
build=${FETTLE_BUILD:-$PWD/build/release}
dir=$(mktemp -d "$build/overhead.XXXXXX") # not /tmp: fsync on tmpfs costs nothing
witness=
trap '[ -z "$witness" ] || kill "$witness" 2>/dev/null; rm -rf "$dir"' EXIT INT TERM

bare() { # bare N DIR
	mkdir "$dir/$2"
	"$build/tests/bench/bare" "$dir/$2" "$1" /bin/true
	rm -r "${dir:?}/$2"
}
now_us() { echo $(($(date +%s%N) / 1000)); }

# What else this machine does changes within a minute: a witness of five bare trials, twice a second,
# says how much of a growth is its own.
witness() {
	while :; do
		echo "$(now_us) $(bare 5 witness)"
		sleep 0.5
	done
}

# A trial of a dozen processes that do little, sampled; the sampler's own words about its CPU time.
sampler() {
	mkdir "$dir/block"
	jq -n --arg s "$SAMPLER_S" '{format: "fettle.block/1", token: "fettle:0:a1", block: 1, attempt: 1, limits: {trial_s: 600},
		workdir: "/tmp", env: {PATH: "/usr/bin:/bin"}, sampler: {period_ms: 1000},
		arms: [{arm: 1, argv: ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep \($s) & done; wait"]}],
		slots: [{slot: 0, arm: 1, kind: "timed"}]}' >"$dir/block/block.json"
	"$build/fettle-agent" "$dir/block" 2>/dev/null
	awk -v max="$MAX_SAMPLER_PCT" -v procs="$(find /proc -maxdepth 1 -name "[0-9]*" | wc -l)" '$2 == "self" { if (!n++) { t0 = $1; c0 = $3 } t = $1; c = $3 }
		END { pct = 100 * (c - c0) / (t - t0)
			printf "sampler at 1 Hz     %.2f %% of a core (at most %s; %d samples, %d processes on the machine)\n", pct, max, n, procs
			exit !(n > 10 && pct < max) }' "$dir/block/samples"
}
sampler || {
	echo FAILED
	exit 1
}
before=$(bare $BARE_N bare)
witness >"$dir/witness.txt" &
witness=$!
begin=$(now_us)
FETTLE_WORKSPACE=$dir/workspace "$build/fettle" run tests/bench/overhead.lua >"$dir/out" 2>&1 || {
	cat "$dir/out"
	exit 1
}
wall_us=$(($(now_us) - begin))
kill "$witness"
wait "$witness" 2>/dev/null || true
witness=
rm -rf "$dir/witness"
after=$(bare $BARE_N bare)

find "$dir/workspace/blocks" -name done.json -exec cat {} + | jq -s --arg before "$before" --arg after "$after" \
	--rawfile witness "$dir/witness.txt" --argjson wall "$wall_us" --argjson max_ratio "$MAX_RATIO" \
	--argjson max_growth "$MAX_GROWTH" -r '
	def median: sort | .[length / 2 | floor];
	sort_by(.start_us) as $b
	| ([$b[].slots | length] | add) as $n
	| [range(1; $b | length) | ($b[.].start_us - $b[. - 1].start_us) / ($b[.].slots | length)] as $us
	| ($us | length / 10 | floor | if . < 1 then 1 else . end) as $k
	| ($us[:$k] | median) as $first | ($us[-$k:] | median) as $last
	| [$witness | split("\n")[] | split(" ") | select(length == 3) | map(tonumber) | {at: .[0], us: .[2]}] as $w
	| ([$w[] | select(.at <= $b[$k].start_us + 1e6) | .us] | median) as $w_first
	| ([$w[] | select(.at >= $b[-$k].start_us - 1e6) | .us] | median) as $w_last
	| ([$before, $after | split(" ")[0] | tonumber] | add / 2) as $bare
	| ($wall / $n) as $cost
	| [$cost / $bare, $last / $first / ($w_last / $w_first)] as [$ratio, $growth]
	| "trials              \($n) in blocks of \($b[0].slots | length)",
	  "bare loop           \($bare | round) us a trial (before \($before | split(" ")[0]), after \($after | split(" ")[0]))",
	  "fettle              \($cost | round) us a trial, everything included",
	  "in the agent        \([$b[] | .end_us - .start_us] | add / $n | round) us a trial",
	  "ratio               \($ratio * 100 | round / 100) (at most \($max_ratio))",
	  "first to last tenth \($first | round) us -> \($last | round) us a trial, the bare witness \($w_first | round) us -> \($w_last | round) us",
	  "growth              \($growth * 100 | round / 100) (at most \($max_growth))",
	  if $n < 5000 then "only \($n) trials: FAILED"
	  elif $ratio > $max_ratio or $growth > $max_growth then "FAILED" else "passed" end' >"$dir/result"
cat "$dir/result"
tail -n 1 "$dir/result" | grep -qx passed
