#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# ci.sh TABLE : run the steps of a table like ci.txt, one after the other, all of them whatever fails. What a step prints is shown
# and kept in build/ci/STEP.log. The last line is "N passed, N failed": the tests that the steps counted, and each step that does
# not count as one. A step has failed if it said so, if it ended with an error, or if its time was up; then it is ended with all
# that it began. No process outlives its step.
# LONG=1: the full programme. Else all ends within $CI_S seconds (3300), whatever the steps would still have been given.
set -u
cd "$(dirname "$0")/.." || exit 4
# Each command has to mean what it means when it is typed.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES MODE CC FETTLE FETTLE_BUILD
export CI=1

readonly MARK=FETTLE_CI=$$ # in the environment of all that a step starts
readonly TABLE=$1 LOGS=${BUILD:-build}/ci
readonly LONGER=20 # times that the full programme may take longer
readonly GRACE_S=${CI_GRACE_S:-60} # for what ends by itself after its step
passed=0 failed=0 summary=''

trim() {
	local s=$1
	s=${s#"${s%%[![:space:]]*}"}
	echo "${s%"${s##*[![:space:]]}"}"
}

# Processes of this run, whatever parent or session they have by now.
ours() {
	grep -lzsx "$MARK" /proc/[0-9]*/environ | cut -d/ -f3
}

# Guards and daemons may need a moment to end; what then remains is named and ended.
end_ours() {
	local end=$((SECONDS + $1)) pids
	while pids=$(ours) && [ -n "$pids" ] && [ $SECONDS -lt $end ]; do sleep 0.2; done
	[ -n "$pids" ] || return
	echo "left behind, and ended now:"
	ps -o pid,etime,args -p "${pids//$'\n'/,}"
	for _ in {1..100}; do
		pids=$(ours)
		[ -n "$pids" ] || return
		# shellcheck disable=SC2086 # a list of numbers
		kill -9 $pids 2>/dev/null
		sleep 0.1
	done
}

# What the log counts; one test if it counts none. An error without a failed test is one.
count() { # LOG STATUS: "PASSED FAILED"
	awk -v status="$2" '
	/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; counted = 1 }
	END {
		if (!counted && status == 0)
			passed = 1
		if (status != 0 && !failed)
			failed = 1
		print passed + 0, failed + 0
	}' "$1"
}

took() {
	printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

step() { # NAME SECONDS COMMAND
	local log=$LOGS/$1.log begun=$SECONDS status=0 good bad line command
	echo "== $1: $3"
	if [ "$2" -le 0 ]; then
		echo 'no time is left for it' >"$log"
		status=124
	else
		# not through a pipe: a daemon that holds its end would be waited for
		env "$MARK" timeout -k 30 "$2" sh -c "$3" >"$log" 2>&1 </dev/null &
		command=$!
		tail -n +1 -f -s 0.5 --pid=$command "$log" &
		wait $command || status=$?
		wait $!
	fi
	end_ours "$GRACE_S"
	read -r good bad < <(count "$log" $status)
	passed=$((passed + good)) failed=$((failed + bad))
	line="$1: $good passed, $bad failed, $(took $((SECONDS - begun)))"
	case $status in 124 | 137) line="$line; its time was up after $(took "$2")" ;; esac
	[ "$bad" = 0 ] || line="$line; alone: $3; its output: $log"
	echo "== $line"
	summary+="$line"$'\n'
}

interrupted() {
	trap '' INT TERM HUP
	echo 'interrupted'
	end_ours 0
	exit 130
}

steps() {
	local end=$((SECONDS + ${CI_S:-3300})) name most short long
	while IFS='|' read -r name most short long; do
		name=$(trim "$name") short=$(trim "$short") long=$(trim "$long")
		case $name in '' | '#'*) continue ;; esac
		if [ -n "${LONG:-}" ]; then
			step "$name" $((most * LONGER)) "${long:-$short}"
		else
			step "$name" $((most < end - SECONDS ? most : end - SECONDS)) "$short"
		fi
	done <"$TABLE"
}

trap interrupted INT TERM HUP
mkdir -p "$LOGS"
steps
printf '\n%s' "$summary"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
