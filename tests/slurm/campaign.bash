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

sql() { sqlite3 -cmd '.timeout 20000' "$WS/fettle.db" "$1"; }

# The agent of the campaign's first attempt begins only when $GATE is there.
gate_first_agent() {
	GATE=$BATS_TEST_TMPDIR/gate
	mkdir -p "$BATS_TEST_TMPDIR/gated"
	printf '#!/bin/sh\ncase $1 in */1.1) until [ -e "%s" ]; do sleep 0.05; done ;; esac\nexec "%s" "$@"\n' \
		"$GATE" "$BUILD/fettle-agent" >"$BATS_TEST_TMPDIR/gated/fettle-agent"
	chmod +x "$BATS_TEST_TMPDIR/gated/fettle-agent"
	export FETTLE_AGENT=$BATS_TEST_TMPDIR/gated/fettle-agent
}

# start_campaign [RECIPE]: in the background, as $pid; without a recipe the one that is there goes on
start_campaign() {
	local args=(resume)
	[ $# = 0 ] || args=(run "$1")
	"$FETTLE" "${args[@]}" -q -w "$WS" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	pid=$!
}

finish_campaign() {
	status=0
	wait "$pid" || status=$?
	cat "$BATS_TEST_TMPDIR/out"
	[ "$status" = 0 ]
	same_as_local
	[ -z "$(squeue -h -t pending,running)" ]
}

# The first allocation's job is in this state; sets $job.
first_job() {
	job=$(sql 'SELECT job_id FROM allocation WHERE id = 1')
	[ -n "$job" ] && [ -n "$(squeue -h -j "$job" -t "$1" 2>/dev/null)" ]
}

first_end() { sql 'SELECT outcome FROM allocation WHERE id = 1'; }

# An event about a job that waits or was suspended was written down.
noticed() { [ "$(sql "SELECT count(*) FROM event WHERE kind = 'waits' AND text LIKE '%$1%'")" -ge 1 ]; }
