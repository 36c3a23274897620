# SPDX-License-Identifier: GPL-2.0-or-later
# What the tests of campaigns on the cluster share; loaded after common.
FETTLE=${FETTLE:-$BUILD/fettle}
PATH=$BUILD/tests/workloads:$PATH
RECIPE=$HERE/../fixtures/recipes/slurm-fixed.lua

report() {
	"$FETTLE" report 1 -w "$1" --json
}

# What must be the same wherever and however often interrupted the campaign ran: states, verdicts and numbers, slots.
essence() {
	report "$1" | jq -S '{state: .campaign.state, alpha: .alpha, fix: (.fix | {settings, state, est, lo, hi, pairs}),
		hypotheses: [.hypotheses[] | {knob, to, state, screen_effect, verdict: (.verdict // {} | {outcome, pairs, est, lo, hi, p})}]}'
	sqlite3 "$1/fettle.db" "SELECT stage_kind, block, slot, arm_label, state, counted FROM v_trial
		WHERE attempt_state = 'valid' ORDER BY block, slot"
}

# The same campaign on this machine, once for all tests: what the cluster must come to as well.
local_essence() {
	local ws=$BATS_FILE_TMPDIR/local
	if [ ! -d "$ws" ]; then
		sed '/^	scheduler = /d; /^	resources = /d' "$RECIPE" >"$BATS_FILE_TMPDIR/local.lua"
		"$FETTLE" run -q -w "$ws" "$BATS_FILE_TMPDIR/local.lua" >"$BATS_FILE_TMPDIR/local.out" || {
			cat "$BATS_FILE_TMPDIR/local.out"
			return 1
		}
	fi
	essence "$ws"
}

same_as_local() {
	diff <(local_essence) <(essence "$WS")
}

count() {
	sqlite3 "$WS/fettle.db" "SELECT count(*) FROM $1"
}

# wait_for COMMAND...: until it succeeds, for two minutes
wait_for() {
	local i
	for ((i = 0; i < 2400; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.05
	done
	echo "in vain: $*"
	return 1
}

# How many jobs the campaign has had so far is at least $1, and one of them runs.
has_job() {
	[ "$(count 'allocation WHERE job_id IS NOT NULL' 2>/dev/null)" -ge "$1" ] && [ -n "$(squeue -h -t running)" ]
}

no_jobs() {
	[ -z "$(squeue -h)" ]
}

no_process() {
	[ -z "$(pgrep -f "$1")" ]
}
