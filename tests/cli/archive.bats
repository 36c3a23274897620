#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# archive, gc and backup: what of a workspace is packed, what can go, and a copy of its database.
bats_require_minimum_version 1.5.0

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return 1
	unset FETTLE_SITE FETTLE_RECIPE_PATH FETTLE_WORKSPACE
	cat >c.lua <<-'END'
		return { name = "small", workload = { command = { "sh", "-c", "echo speed $((100 + A)); ln -s out link" },
			metrics = { pattern = "speed (?<value>\\S+)" } }, objective = { metric = "speed", better = "up" },
			knobs = { { name = "a", env = "A", values = { 50 }, class = "neutral" } }, mode = "quick", rounds = 1,
			warmup_trials = 0, blocks = { aa = 2, final = 2, soak = 0 } }
	END
	"$FETTLE" run -q -w ws c.lua
}

setup() {
	cp -a "$BATS_FILE_TMPDIR/ws" "$BATS_TEST_TMPDIR/ws"
	cd "$BATS_TEST_TMPDIR" || return 1
	export FETTLE_WORKSPACE=$PWD/ws
}

raw() { (cd ws && find blocks -not -path '*/.tokens*' -type f -exec md5sum {} + | sort -k 2); }

@test "archive: packed, told in reports, by reparse, probe and diagnose, and brought back" {
	raw >before
	run -0 "$FETTLE" archive
	[[ $output == *'would be packed'* ]]
	"$FETTLE" archive --keep small
	raw | cmp - before
	"$FETTLE" archive 1
	[ -z "$(ls ws/blocks)" ]
	tar -tzf ws/archive/campaign-1.1.tar.gz | grep -qx blocks/1.1/t00/out
	jq -e '.format == "fettle.archive/1" and (.dirs | length) >= 4 and all(.files[]; .link or (.xxh | length) == 32)' \
		ws/archive/campaign-1.1.json
	grep -q 'packed in `archive/campaign-1.1.tar.gz`; `fettle archive --restore 1`' ws/reports/campaign-1.md
	jq -e '.archives == ["archive/campaign-1.1.tar.gz"]' ws/reports/campaign-1.json
	"$FETTLE" report --format json | jq -e '.archives | length == 1'
	"$FETTLE" reparse | grep -q 'blocks/1.1: it is packed in archive/campaign-1.1.tar.gz: `fettle archive --restore 1`'
	run -4 "$FETTLE" probe ws/blocks/1.1/t00/out
	[[ $output == *'it is packed in archive/campaign-1.1.tar.gz'* ]]
	run -4 "$FETTLE" diagnose ws/blocks/1.1
	[[ $output == *'fettle archive --restore 1'* ]]
	"$FETTLE" history
	"$FETTLE" archive --restore small
	raw | cmp - before
	[ -z "$(ls -A ws/archive)" ]
	run ! grep -q 'fettle archive --restore' ws/reports/campaign-1.md
}

@test "archive: elsewhere; a tar file that was changed, is cut or gone is found and brings nothing back" {
	raw >before
	# a limit on the size of files stops tar as a full disk does
	head -c 300000 /dev/urandom >ws/blocks/1.1/t00/big
	raw >before
	run -4 bash -c 'ulimit -f 64; exec "$FETTLE" archive 1 --dir ../full'
	[[ $output =~ 'tar cannot pack the files: '[a-zA-Z] ]]
	[ -z "$(ls -A ../full)" ]
	raw | cmp - before
	(umask 022 && "$FETTLE" archive --all --dir ../other/place)
	[ "$(stat -c %a ../other/place/*.tar.gz)" = 600 ]
	tar=$(jq -r .tar ws/archive/campaign-1.1.json)
	[[ $tar == /*/other/place/*-campaign-1.1.tar.gz ]]
	"$FETTLE" archive --verify
	cp "$tar" whole
	printf x | dd of="$tar" bs=1 seek=200 conv=notrunc status=none
	run -4 "$FETTLE" archive --verify
	[[ $output == *'is damaged: of the size that was written'* ]]
	run -4 "$FETTLE" archive --restore 1
	[ -e ws/archive/campaign-1.1.json ]
	rm "$tar"
	run -4 "$FETTLE" archive --verify --json
	[ "$(sed '/^fettle/d' <<<"$output" | jq -r '.[0].whole')" = false ]
	cp whole "$tar"
	"$FETTLE" archive --restore --all
	raw | cmp - before
}

@test "archive: what came into a directory since, and what is no file, is never removed" {
	"$FETTLE" archive --keep 1
	echo mine >ws/blocks/1.1/notes
	"$FETTLE" archive 1 >out
	grep -q 'blocks/1.1 stays: blocks/1.1/notes is not as it was packed' out
	[ "$(ls ws/blocks)" = 1.1 ]
	run -4 "$FETTLE" archive --restore 1
	[[ $output == *'blocks/1.1/notes is there and another one than in archive/'*'move it away first'* ]]
	rm ws/blocks/1.1/notes
	"$FETTLE" archive --restore 1
	mkfifo ws/blocks/1.1/pipe
	run -4 "$FETTLE" archive 1
	[[ $output == *'pipe is neither a file nor a directory'* ]]
	[ -e ws/blocks/1.1/t00/out ]
}

@test "archive: a campaign that is not over, a hostile manifest, wrong words" {
	sqlite3 ws/fettle.db "UPDATE campaign SET state = 'stopped'"
	run -4 "$FETTLE" archive 1
	[[ $output == *'campaign 1 is stopped: its raw files are packed when it is over'* ]]
	sqlite3 ws/fettle.db "UPDATE campaign SET state = 'done'"
	"$FETTLE" archive 1
	sed -i 's|"blocks/1.1"|"blocks/../../x"|' ws/archive/campaign-1.1.json
	run -4 "$FETTLE" archive --restore 1
	[[ $output == *'a directory does not lie below blocks/'* ]]
	run -2 "$FETTLE" archive --restore
	run -2 "$FETTLE" archive --restore --verify 1
	run -4 "$FETTLE" archive --restore 7
}

@test "gc: lists with bytes, removes with --yes, and never a result, a raw file or what is not known" {
	run -0 "$FETTLE" gc
	[[ $output == '0 things, 0 bytes: there is nothing to remove' ]]
	mkdir -p ws/blocks/1.1/t00/tmp ws/blocks/77.1/t00 ws/agent/abc
	echo scratch >ws/blocks/1.1/t00/tmp/x
	for f in fettle.db.before-3 reports/.campaign-1.md.tmp.77 agent/abc; do touch -d '40 days ago' ws/$f; done
	touch ws/reports/.young.md.tmp.77 ws/fettle.db.before-4
	raw >before
	"$FETTLE" gc >list
	cat list
	grep -qE '^ +[0-9]+  blocks/1.1/t00/tmp: scratch of a trial' list
	grep -qF 'reports/.campaign-1.md.tmp.77: left by a process' list
	grep -q '^4 things, [0-9]* bytes; --yes removes them$' list
	grep -q '^stays: blocks/77.1 ' list
	[ -e ws/blocks/1.1/t00/tmp/x ] # a dry run
	sqlite3 ws/fettle.db "UPDATE campaign SET state = 'running'"
	[ "$("$FETTLE" gc --json | jq -r '[.items[] | select(.stays | not) | .path] | join(" ")')" = \
		'fettle.db.before-3 reports/.campaign-1.md.tmp.77' ]
	sqlite3 ws/fettle.db "UPDATE campaign SET state = 'done'"
	"$FETTLE" gc --yes
	grep -v '/tmp/x$' before >want
	raw | cmp - want
	[ -e ws/fettle.db.before-4 ] && [ -e ws/reports/.young.md.tmp.77 ] && [ -e ws/blocks/77.1/t00 ]
	[ ! -e ws/fettle.db.before-3 ] && [ ! -e ws/agent/abc ] && [ ! -e ws/blocks/1.1/t00/tmp ]
	"$FETTLE" report >/dev/null
}

@test "backup: while a writer writes; what it says, restored as the man page says" {
	while [ ! -e stop ]; do
		sqlite3 -cmd '.timeout 10000' ws/fettle.db "INSERT INTO event(campaign, at_us, kind, text) VALUES (1, 1, 'note', 'x')"
	done &
	writer=$!
	for n in 1 2 3 4; do "$FETTLE" backup copy$n.db; done
	touch stop
	wait $writer
	for n in 1 2 3 4; do
		[ "$(sqlite3 copy$n.db 'PRAGMA integrity_check; PRAGMA journal_mode')" = "ok
delete" ]
	done
	[ "$(stat -c %a copy1.db)" = 600 ]
	run -4 "$FETTLE" backup copy1.db
	[[ $output == *'exists: a backup overwrites nothing'* ]]
	[ -z "$(find . -name '*.tmp.*')" ]
	run -2 "$FETTLE" backup
	"$FETTLE" report --format json | jq -S 'del(.events)' >want
	sqlite3 ws/fettle.db 'DELETE FROM event; DELETE FROM fix_guard; DELETE FROM fix'
	rm -f ws/fettle.db ws/fettle.db-wal ws/fettle.db-shm
	cp copy4.db ws/fettle.db
	"$FETTLE" report --format json | jq -S 'del(.events)' | cmp - want
	"$FETTLE" status
}

@test "backup: a damaged database, a full disk and a directory that is not there leave no file" {
	run -4 "$FETTLE" backup none/copy.db
	printf 'damaged, all of it' | dd of=ws/fettle.db bs=1 seek=20480 conv=notrunc status=none
	run ! "$FETTLE" backup copy.db
	[[ $output == *damaged* || $output == *malformed* ]]
	[ ! -e copy.db ]
	[ -z "$(find . -name 'copy.db*')" ]
}
