#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Raw files are read again: killed at any commit it is done by the next one, verdicts stay, what differs is told.
# They are packed and brought back: killed at any moment each file is under blocks/ or in a tar file that is whole.

load common
setup_file() {
	faults_setup_file
	build_failnth
}
setup() { W=$BATS_TEST_TMPDIR/w; }

# values DB: what every trial of an attempt that counts has
values() {
	sqlite3 "$1/fettle.db" "SELECT b.idx, a.dir, t.slot, t.state, d.name, m.stat, l.labels, m.value FROM metric m
		JOIN metric_def d ON d.id = m.def JOIN labelset l ON l.id = m.label JOIN trial t ON t.id = m.trial
		JOIN attempt a ON a.id = t.attempt JOIN block b ON b.id = a.block ORDER BY 1, 2, 3, 5, 6, 7"
}

# As if older parsers had read it: other values, some missing, a trial that failed.
spoil() {
	cp -r "$REFERENCE" "$1"
	sqlite3 "$1/fettle.db" "UPDATE attempt SET parser_rev = NULL;
		UPDATE metric SET value = 1.5 * value WHERE def = (SELECT id FROM metric_def WHERE name = 'step_time_ms');
		DELETE FROM metric WHERE def = (SELECT id FROM metric_def WHERE name = 'loss');
		UPDATE trial SET state = 'failed', reason = 'no value' WHERE id = 5"
}

@test "reparse: killed at any commit, each attempt has its old values or its new ones, and again does the rest" {
	build_failnth
	spoil "$W"
	values "$REFERENCE" >"$W.want"
	for nth in $(seq 100); do
		rc=0
		FAIL_NTH=$nth LD_PRELOAD=$BATS_FILE_TMPDIR/failnth.so "$FETTLE" reparse -w "$W" >"$W.out" 2>&1 || rc=$?
		[ "$rc" -eq 137 ] || break
		[ "$(sqlite3 "$W/fettle.db" 'PRAGMA integrity_check')" = ok ]
		# parser_rev came with the new values, in each attempt of which some are new
		[ -z "$(sqlite3 "$W/fettle.db" "SELECT a.id FROM attempt a JOIN trial t ON t.attempt = a.id AND t.kind = 'timed'
			LEFT JOIN metric m ON m.trial = t.id AND m.stat = 'last'
			AND m.def = (SELECT id FROM metric_def WHERE name = 'loss')
			GROUP BY a.id HAVING (count(m.value) = count(*)) <> (a.parser_rev IS NOT NULL) OR count(m.value) NOT IN (0, count(*))")" ]
	done
	[ "$rc" -eq 0 ]
	[ "$nth" -gt 8 ]
	values "$W" | diff "$W.want" -
	results "$W" | diff "$REFERENCE.txt" -
}

@test "reparse: what changed, what cannot be read again, and a verdict that would be another" {
	spoil "$W"
	sqlite3 "$W/fettle.db" "UPDATE stage SET alpha_share = 1e-9 WHERE kind = 'confirm'"
	rm "$W/blocks/3.1/t01.json"
	echo >>"$W/blocks/4.1/t02/out"
	verdicts="SELECT * FROM verdict; SELECT * FROM fix; SELECT * FROM hypothesis"
	before=$(sqlite3 "$W/fettle.db" "$verdicts")
	run "$FETTLE" reparse -w "$W"
	[ "$status" -eq 1 ]
	[[ $output == *"6 attempts read again"* ]]
	[[ $output == *"blocks/3.1: record of slot 1: "*"t01.json: No such file"* ]]
	[[ $output == *"blocks/4.1: t02/out has "*" bytes, its record says "* ]]
	[[ $output == *"step_time_ms (mean): "*" changed by -33.3 to -33.3 %"* ]]
	[[ $output == *"loss (last): "*" new"* ]]
	[[ $output == *"blocks/2.1, slot 1: failed -> ok"* ]]
	[[ $output == *"fast=true: would be undecided ("*"); it was accepted ("*"), and stays so"* ]]
	[ "$(sqlite3 "$W/fettle.db" "$verdicts")" = "$before" ]
	[ "$(sqlite3 "$W/fettle.db" "SELECT count(*) FROM attempt WHERE parser_rev IS NULL")" = 2 ]
	[[ "$(sqlite3 "$W/fettle.db" "SELECT text FROM event WHERE kind = 'reparse'")" == "6 attempts read again"* ]]
	run "$FETTLE" reparse --json -w "$W"
	[ "$status" -eq 1 ]
	[ "$(jq -c '[.attempts, (.kept | length), .changes, (.conclusions | map(.differs))]' <<<"$output")" = '[6,2,[],[true,false]]' ]
}

# Every raw file is where it was, or in an archive that is whole.
nothing_lost() {
	"$FETTLE" archive --verify -w "$W" >"$W.verify"
	(cd "$W" || exit; md5sum --quiet -c "$BATS_TEST_TMPDIR/sums" 2>/dev/null || true) | sed 's/: FAILED.*//' >"$W.gone"
	[ ! -s "$W.gone" ] || sed -n 's/.*"path": "\(.*\)",$/\1/p' "$W"/archive/campaign-1.*.json | sort >"$W.packed"
	[ ! -s "$W.gone" ] || sort "$W.gone" | comm -23 - "$W.packed" >"$W.lost"
	[ ! -s "$W.lost" ] || { cat "$W.lost"; return 1; }
}

# killed_at CALL N ARGUMENT...: fettle archive with these, killed before its N-th such call
killed_at() {
	local call=$1 n=$2
	shift 2
	rc=0
	FAIL_NTH=$n FAIL_CALLS=$call LD_PRELOAD=$BATS_FILE_TMPDIR/failnth.so "$FETTLE" archive -w "$W" "$@" >"$W.out" 2>&1 || rc=$?
	nothing_lost
	[ "$rc" -eq 137 ]
}

same_raw_files() { diff -r -x .tokens "$REFERENCE/blocks" "$W/blocks"; }

@test "archive: killed at any moment, packing and bringing back, nothing is lost, and again does the rest" {
	cp -a "$REFERENCE" "$W"
	(cd "$W" && find blocks -type f -not -path '*/.tokens/*' -exec md5sum {} +) >"$BATS_TEST_TMPDIR/sums"
	# before each sync and rename that packing needs (tar is a child: it dies with us)
	for call in rename fsync; do
		n=1
		step=1
		[ $call = rename ] || step=3
		while killed_at $call $n 1; do n=$((n + step)); done
		cat "$W.out"
		[ "$rc" -eq 0 ]
		[ "$n" -gt 2 ]
		[ -z "$(ls "$W/blocks")" ]
		n=1
		while killed_at $call $n --restore 1; do n=$((n + step)); done
		cat "$W.out"
		[ "$rc" -eq 0 ] || grep -q 'nothing of campaign 1 is packed' "$W.out" # by one that was killed as its last act
		same_raw_files
	done
	# in the midst of the removal, of the originals and of what is left of them
	for n in 1 2 40 90; do killed_at unlinkat $n 1; done
	"$FETTLE" archive -w "$W" 1
	[ -z "$(ls "$W/blocks")" ]
	"$FETTLE" archive -w "$W" --restore 1
	for n in 30 70; do killed_at unlinkat $n 1; done
	killed_at rename 3 --restore 1
	"$FETTLE" archive -w "$W" --restore 1
	same_raw_files
	[ -z "$(ls "$W/archive")" ]
	"$FETTLE" reparse -w "$W"
}
