# SPDX-License-Identifier: GPL-2.0-or-later
# What the tests on a cluster share.
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BUILD=${FETTLE_BUILD:-$HERE/../../build/release}
HELPER=$BUILD/fettle-slurm
AGENT=$BUILD/fettle-agent
DRIVE=$BUILD/tests/slurm/drive

cluster() {
	local command=$1
	shift
	"$HERE/cluster.sh" "$command" "$FETTLE_CLUSTER_DIR" "$@"
}

# A block directory whose one trial runs a shell command: new_block COMMAND [SLOTS]
new_block() {
	local dir slots i
	dir=$(mktemp -d "$BATS_TEST_TMPDIR/blk.XXXXXX")
	for ((i = 0; i < ${2:-1}; i++)); do slots+=",{\"slot\":$i,\"arm\":1,\"repeat\":$i,\"kind\":\"timed\"}"; done
	jq -n --arg cmd "$1" --argjson slots "[${slots#,}]" '{format: "fettle.block/1", token: "fettle:0:a0", block: 1, attempt: 1,
		deadline_us: 0, window: {pattern: "", source: "out", warmup: 0, steps: 0},
		limits: {trial_s: 300, log_bytes: 1048576, work_bytes: 1048576, grace_s: 1}, launch: [],
		workdir: "/tmp", env: {PATH: "/usr/local/bin:/usr/bin:/bin"}, secrets: [], sampler: {period_ms: 500},
		evidence: {env_prefixes: []},
		arms: [{arm: 1, config: "x", argv: ["/bin/sh", "-c", $cmd], env: {}, unset: []}],
		slots: $slots}' >"$dir/block.json"
	echo "$dir"
}

# A name that no other test uses.
new_token() {
	echo "fettle:$(printf %08x $((RANDOM * 32768 + RANDOM))):a1"
}

# Scheduler slurm as a co-process: its memory lives for the whole test. `say COMMAND...` sets $answer.
drive_start() {
	coproc DRIVE_CO { "$DRIVE" "$HELPER" "${1:-$AGENT}" "${@:2}" 2>"$BATS_TEST_TMPDIR/drive.err"; }
}

say() {
	echo "$*" >&"${DRIVE_CO[1]}"
	answer=
	read -r -t 400 answer <&"${DRIVE_CO[0]}" || answer="(drive is silent: $(cat "$BATS_TEST_TMPDIR/drive.err"))"
	echo "# $* -> $answer"
}

drive_stop() {
	[ -z "${DRIVE_CO_PID:-}" ] || { eval "exec ${DRIVE_CO[1]}>&-"; wait "$DRIVE_CO_PID"; } 2>/dev/null || true
}

# `submit TOKEN DIR [NAME=VALUE...]` sets $id.
submit() {
	say submit "$@"
	[[ $answer == ok\ * ]]
	# shellcheck disable=SC2034 # the tests read it
	id=${answer#ok }
}

# The job's agent has begun: Slurm calls a job running before its script is.
begun() {
	local i
	for ((i = 0; i < 1200; i++)); do
		[ -e "$1/claim.json" ] && return 0
		sleep 0.1
	done
	echo "no agent began in $1"
	return 1
}

# The answer matches a pattern of bash.
expect() {
	# shellcheck disable=SC2053 # a pattern on purpose
	[[ $answer == $1 ]] || { echo "expected: $1"; echo "answer:   $answer"; return 1; }
}

end_all_jobs() {
	scancel -u "$(id -un)" 2>/dev/null
	local i
	for ((i = 0; i < 1200; i++)); do
		[ -z "$(squeue -h 2>/dev/null)" ] && return 0
		sleep 0.1
	done
	squeue
	return 1
}
