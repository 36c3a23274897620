#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# One workspace of several users: two real ones, of one group. Needs root, to make them.

setup_file() {
	export ADA=fettle-a$$ BOB=fettle-b$$ TEAM=fettle-t$$
	groupadd "$TEAM"
	useradd -M -N -g nogroup -G "$TEAM" -s /bin/sh "$ADA"
	useradd -M -N -g nogroup -G "$TEAM" -s /bin/sh "$BOB"
	# Where users can look: the sources may lie where only we can.
	SHARED=$(mktemp -d /tmp/fettle-users.XXXXXX)
	export SHARED
	chmod 755 "$SHARED"
	cp "$FETTLE" "$FETTLE_BUILD/fettle-agent" "$SHARED"
	cp -r "$BATS_TEST_DIRNAME/../../recipes" "$SHARED"
}

teardown_file() {
	rm -rf "$SHARED"
	userdel "$ADA"
	userdel "$BOB"
	groupdel "$TEAM"
}

setup() {
	bats_require_minimum_version 1.5.0
	unset FETTLE_WORKSPACE FETTLE_SITE FETTLE_RECIPE_PATH
	cd "$SHARED" || return 1
}

# as USER COMMAND...: with the umask that most systems give, which leaves the group out
as() {
	local user=$1
	shift
	setpriv --reuid "$user" --regid nogroup --init-groups env -i PATH="$PATH" HOME=/nonexistent USER="$user" \
		FETTLE_RECIPES="$SHARED/recipes" FETTLE_AGENT="$SHARED/fettle-agent" \
		sh -c 'umask 022; exec "$@"' sh "$@"
}

# A workspace of the group, and a campaign whose trials wait while the file `wait` is there.
group_workspace() {
	mkdir ws
	chgrp "$TEAM" ws
	chmod 2770 ws
	mkdir -m 1777 gate
	cat >c.lua <<-END
		return { name = "shared", objective = "trial_wall_s", mode = "quick",
			workload = { command = { "sh", "-c", "mkdir -p made/dir; echo x >made/dir/file; while [ -e $SHARED/gate/wait ]; do sleep 0.02; done" } } }
	END
	chmod 644 c.lua
}

# until COMMAND...: wait for it, a minute at most
until_true() {
	for _ in $(seq 600); do
		"$@" && return
		sleep 0.1
	done
	echo "never true: $*"
	return 1
}

running() {
	[ -n "$(find ws/blocks -name claim.json 2>/dev/null)" ]
}

nobody_runs() {
	! pgrep -u "$1" >/dev/null
}

@test "one begins, another looks, cannot kill what is not his, asks it to drain, and goes on with it" {
	group_workspace
	touch gate/wait
	as "$ADA" ./fettle run c.lua -w ws -q >run.txt 2>&1 3>&- &
	until_true running
	run as "$BOB" ./fettle status -w ws
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"begun by $ADA"* ]]
	[[ $output == *'driven by process'* ]]
	run as "$BOB" ./fettle stop -w ws
	echo "$output"
	[ "$status" -eq 4 ]
	[[ $output == *"process "*" of $ADA drives it: "*"fettle stop --drain"* ]]
	as "$BOB" ./fettle stop --drain -w ws
	rm gate/wait
	wait
	run as "$BOB" ./fettle status -w ws --json
	[ "$(jq -r '.[0].state' <<<"$output")" = stopped ]
	as "$BOB" ./fettle resume -w ws -q
	[ "$(as "$ADA" ./fettle status -w ws --json | jq -r '.[0] | [.state, .user, .also_submitted_by[]] | join(" ")')" = \
		"done $ADA $BOB" ]
	as "$ADA" ./fettle report -w ws >report.md
	grep -q "Begun by $ADA; jobs were also submitted by $BOB\." report.md
	[ "$(sqlite3 ws/fettle.db 'SELECT count(DISTINCT user) FROM v_allocation')" -eq 2 ]
	# everything is the group's, as the workspace is
	[ -z "$(find ws ! -group "$TEAM" -print -o ! -perm -g+rw -print -o -type d ! -perm -2070 -print -o -perm /o+rwx -type d -print)" ] || {
		find ws ! -perm -g+rw -ls -o -type d ! -perm -2070 -ls -o ! -group "$TEAM" -ls
		false
	}
	[ "$(stat -c %A ws/fettle.db)" = -rw-rw---- ]
	as "$BOB" rm -r ws/blocks ws/reports
}

@test "a killed owner's job goes on as his; another stops the campaign but not the job, whose results count when he goes on" {
	rm -rf ws gate c.lua
	group_workspace
	touch gate/wait
	as "$ADA" ./fettle run c.lua -w ws -q >run.txt 2>&1 3>&- &
	until_true running
	pkill -KILL -u "$ADA" -x fettle
	wait || true
	run as "$BOB" ./fettle stop -w ws
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *'stays in flight: '*'is run by another user of this workspace: only they, or root, can end it'* ]]
	rm gate/wait
	until_true nobody_runs "$ADA"
	as "$BOB" ./fettle resume -w ws -q
	# the trials of A's job count: no block of it was run twice
	[ "$(sqlite3 ws/fettle.db "SELECT state FROM attempt WHERE allocation = 1")" = valid ]
	[ "$(as "$BOB" ./fettle status -w ws --json | jq -r '.[0] | [.state, .user, .also_submitted_by[]] | join(" ")')" = \
		"done $ADA $BOB" ]
}

@test "somebody else's private workspace: who it belongs to, and what to do; nothing is made there" {
	mkdir -m 1777 homes
	as "$ADA" mkdir homes/ada
	printf 'return { name = "c", objective = "trial_wall_s", workload = { command = { "true" } } }\n' >d.lua
	echo '{"sd_run":0.01}' >truth.json
	as "$ADA" ./fettle run d.lua -w homes/ada/ws -q -s fake --fake truth.json
	[ "$(stat -c %a homes/ada/ws homes/ada/ws/fettle.db | paste -sd' ')" = '700 600' ]
	for words in 'status' 'report' 'tick' 'run d.lua -s fake --fake truth.json'; do
		# shellcheck disable=SC2086 # words
		run as "$BOB" ./fettle $words -w homes/ada/ws
		echo "$output"
		[ "$status" -eq 4 ]
		[[ $output == *"homes/ada/ws belongs to $ADA, and $BOB may not "*" it: ask $ADA to make it a group's"* ]]
	done
	# readable, and no more: it can be looked at
	chmod 755 homes/ada/ws
	chmod 644 homes/ada/ws/fettle.db
	as "$BOB" ./fettle status -w homes/ada/ws | grep -q "begun by $ADA"
	run as "$BOB" ./fettle tick -w homes/ada/ws
	[ "$status" -eq 4 ]
	[[ $output == *"belongs to $ADA, and $BOB may not change it"* ]]
}

@test "a place where nothing can be written: whose right is lacking and what to type, or that the file system is read-only" {
	mkdir -m 1777 place
	printf 'return { name = "c", objective = "trial_wall_s", workload = { command = { "true" } } }\n' >place/c.lua
	refused() { # TEXT COMMAND...: one line, status 4
		run as "$BOB" ./fettle "${@:2}"
		echo "$output"
		[ "$status" -eq 4 ]
		[[ ${lines[-1]} == *": error: $1"* ]] || return 1
	}
	mkdir -m 755 place/roots
	for dir in place/roots place/roots/a/b; do
		refused "$dir cannot be the workspace: place/roots belongs to root, and $BOB may not write there: name another with --workspace" \
			run -s fake --anyway -w "$dir" place/c.lua
	done
	as "$BOB" ./fettle run -q -s fake --anyway -w place/ws place/c.lua >ro.txt
	for own in fettle.db blocks .; do
		chmod a-w "place/ws/$own"
		refused "place/ws$([ $own != blocks ] || echo /blocks) is $BOB's own, without the right to change it: \`chmod -R u+rwX place/ws" resume -w place/ws
		chmod u+w "place/ws/$own"
	done
	chown root place/ws
	chmod 755 place/ws
	refused "place/ws belongs to root, and $BOB may not change it: ask root to make it a group's" resume -w place/ws

	ns=(unshare -m)
	"${ns[@]}" true 2>/dev/null || ns+=(--propagation unchanged)
	# shellcheck disable=SC2016 # for the inner shell
	"${ns[@]}" sh -c 'mount --bind place place && mount -o remount,ro,bind place && cd place && export FETTLE_WORKSPACE=ws &&
		for c in resume tick "run -s fake --anyway c.lua" "history import c.lua" "run -s fake --anyway -w new c.lua" status; do
			"$FETTLE" $c 2>&1
			echo "status $?"
		done' >ro.txt
	cat ro.txt
	[ "$(grep -c ": error: ws lies on a read-only file system (\`fettle status\` and \`fettle report\` show what is there): have that mounted writable, or name another with --workspace DIR or \$FETTLE_WORKSPACE\$" ro.txt)" -eq 4 ]
	[ "$(grep -c ': error: new lies on a read-only file system: have that mounted writable, or name another' ro.txt)" -eq 1 ]
	[ "$(grep '^status' ro.txt | xargs)" = 'status 4 status 4 status 4 status 4 status 4 status 0' ]
}
