#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The program itself: help, version, unknown commands, exit statuses.

bats_require_minimum_version 1.5.0

@test "no argument prints the help on stderr, with status 2" {
	run --separate-stderr "$FETTLE"
	[ "$status" -eq 2 ]
	[ -z "$output" ]
	[[ $stderr == 'usage: fettle'* ]]
}

@test "--help, -h and help print it on stdout" {
	for word in --help -h help; do
		run --separate-stderr "$FETTLE" $word
		[ "$status" -eq 0 ]
		[[ $output == 'usage: fettle'* ]]
		[[ $output == *'exit status:'* ]]
		[ -z "$stderr" ]
	done
}

@test "--help lists every command of orchestrator/cmd but those that only completions call" {
	run "$FETTLE" --help
	for f in "$BATS_TEST_DIRNAME"/../../orchestrator/cmd/cmd_*.c; do
		[ -e "$f" ] || continue
		! grep -q '\.hidden = true' "$f" || continue
		name=$(basename "$f" .c)
		name=${name#cmd_}
		[[ $output == *"  ${name//_/-} "* ]] || { echo "not listed: $name"; return 1; }
	done
}

@test "--version prints one line" {
	run "$FETTLE" --version
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output =~ ^fettle\ [0-9]+\.[0-9]+ ]]
}

@test "an unknown command or option: status 2, and what to do" {
	run --separate-stderr "$FETTLE" no-such-command-at-all
	[ "$status" -eq 2 ]
	[ -z "$output" ]
	[[ $stderr == *'there is no command `no-such-command-at-all`'* ]]
	[[ $stderr == *'Try `fettle --help`.'* ]]
	run "$FETTLE" --frobnicate
	[ "$status" -eq 2 ]
	[[ $output == *'unknown option `--frobnicate`'* ]]
	run "$FETTLE" help no-such-command-at-all
	[ "$status" -eq 2 ]
}

@test "control characters of arguments do not reach the terminal: commands, options and their values" {
	evil=$'\033[2J\a\302\233'
	clean() { # ARGUMENT...: status 2; nothing acts
		run "$FETTLE" "$@"
		[ "$status" -eq 2 ] || { echo "$1: status $status: $output"; return 1; }
		[[ ${output//$'\n'/} != *[[:cntrl:]]* && $output != *$'\302\233'* ]] || { cat -v <<<"$*: $output"; return 1; }
	}
	shows() {
		clean "$@"
		[[ $output == *'\x1b[2J'* ]] || { echo "$*: $output"; return 1; }
	}
	shows "$evil"
	shows "--$evil"
	shows help "$evil"
	shows run a "b$evil"
	clean status "-$evil"
	declare -A tried
	for command in $("$FETTLE" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
		# each option with a value; the last word keeps the command from running whatever is taken
		for option in $("$FETTLE" "$command" --usage | grep -oE -- '--[a-z-]+='); do
			[ -n "${tried[$option]}" ] || clean "$command" "$option$evil" "--$evil"
			tried[$option]=1
		done
		shows "$command" "--$evil"
	done
}

@test "output that cannot be written is an error" {
	run sh -c '"$FETTLE" --help >/dev/full'
	[ "$status" -eq 4 ]
	[[ $output == *'No space left on device'* ]]
}

@test "a reader that goes away is no crash" {
	run sh -c '{ "$FETTLE" --help; echo $? >&2; } | true'
	[[ $output =~ ^[04]$ ]]
}

@test "a slip of the fingers gets the nearest command" {
	run "$FETTLE" statsu
	[ "$status" -eq 2 ]
	[[ $output == *'did you mean `status`?'* ]]
}

@test "every command explains itself, also through help" {
	while read -r name _; do
		run --separate-stderr "$FETTLE" "$name" --help
		[ "$status" -eq 0 ] || { echo "$name --help: status $status"; return 1; }
		[[ ${output,,} == "usage: fettle $name"* ]] || { echo "$name --help: $output"; return 1; }
		[ -z "$stderr" ]
		run "$FETTLE" help "$name"
		[ "$status" -eq 0 ]
	done < <("$FETTLE" --help | sed -n 's/^  \([a-z][a-z-]*\)  *[a-z].*/\1/p')
}

@test "an unknown option of any command: status 2" {
	while read -r name _; do
		run "$FETTLE" "$name" --no-such-option-at-all
		[ "$status" -eq 2 ] || { echo "$name: status $status: $output"; return 1; }
	done < <("$FETTLE" --help | sed -n 's/^  \([a-z][a-z-]*\)  *[a-z].*/\1/p')
}

@test "-v and -vv are accepted before the command only" {
	run "$FETTLE" -v -vv --version
	[ "$status" -eq 0 ]
	run "$FETTLE" -vvv --version
	[ "$status" -eq 2 ]
}
