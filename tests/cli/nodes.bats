#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle nodes: a slow node of a made-up cluster is named, a healthy cluster is left alone.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	FETTLE=${FETTLE:-$PWD/build/fettle}
	W=$BATS_TEST_TMPDIR/ws
	sed 's/^	rounds = .*/	blocks = { aa = 24, soak = 0 }, rounds = 1, seed = 1, resources = { placement = "spread" },/' \
		tests/fixtures/recipes/fake.lua >"$BATS_TEST_TMPDIR/c.lua"
}

campaign() {
	echo "$1" >"$BATS_TEST_TMPDIR/truth.json"
	"$FETTLE" run -q -w "$W" --fake "$BATS_TEST_TMPDIR/truth.json" "$BATS_TEST_TMPDIR/c.lua" >"$BATS_TEST_TMPDIR/out" || {
		cat "$BATS_TEST_TMPDIR/out"
		return 1
	}
}

@test "a node that is 8 % slow is named, with its interval" {
	campaign '{"nodes": 8, "slow_node": 5, "slow_node_by": 0.08, "sd_alloc": 0.005, "sd_run": 0.005}'
	run "$FETTLE" nodes -w "$W"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == "8 nodes, "*"; 1 slow"* ]]
	grep -qE '^  n5 .* slow$' <<<"$output"
	[ "$(grep -c ' slow$' <<<"$(tail -n +3 <<<"$output")")" = 1 ]
	"$FETTLE" nodes -w "$W" --json >"$BATS_TEST_TMPDIR/json"
	jq -e '.format == "fettle.nodes/1" and .estimated and (.nodes | length) == 8' "$BATS_TEST_TMPDIR/json"
	jq -e '[.nodes[] | select(.slow)] | length == 1 and .[0].node == "n5" and .[0].lo < -0.08 and .[0].hi > -0.08 and .[0].hi < -0.01' \
		"$BATS_TEST_TMPDIR/json"
	# the same over all campaigns of the workspace, and by another idea of slow
	"$FETTLE" nodes -w "$W" --all --json | jq -e '[.nodes[] | select(.slow) | .node] == ["n5"]'
	"$FETTLE" nodes -w "$W" --slow 20 --json | jq -e '[.nodes[] | select(.slow)] == []'
}

@test "healthy nodes are not accused; too few blocks are said to be too few" {
	campaign '{"nodes": 8, "sd_alloc": 0.01, "sd_run": 0.01}'
	"$FETTLE" nodes -w "$W" --json | jq -e '.estimated and ([.nodes[] | select(.slow)] == [])'
	W=$BATS_TEST_TMPDIR/one
	campaign '{"nodes": 1}'
	run "$FETTLE" nodes -w "$W"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"too few to tell nodes from noise"* ]]
	run "$FETTLE" nodes -w "$W" 99
	[ "$status" = 4 ] || [ "$status" = 2 ]
	[[ $output == *"holds no campaign 99"* ]]
	run "$FETTLE" nodes -w "$W" --slow 120
	[ "$status" = 2 ]
}
