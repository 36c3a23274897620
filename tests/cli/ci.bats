#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# ci.sh: every step runs whatever failed before, the total tells the truth, nothing hangs and no process is left.

setup() {
	ci_sh=("${BASH:-bash}" "$BATS_TEST_DIRNAME/../ci.sh")
	export BUILD=$BATS_TEST_TMPDIR/build
	TABLE=$BATS_TEST_TMPDIR/table
}

# ci.sh with a table from standard input
ci() {
	cat >"$TABLE"
	run env -u LONG "$@" "${ci_sh[@]}" "$TABLE"
	echo "$output"
}

@test "ci: counts, and all steps run" {
	ci <<-'END'
		# a comment
		first  | 60 | echo '3 passed, 0 failed'; echo '2 passed, 0 failed' |
		second | 60 | echo no total | exit 1
	END
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = '6 passed, 0 failed' ]
	[[ $output == *'== first: 5 passed, 0 failed, 0:0'* ]]
	[ "$(cat "$BUILD/ci/second.log")" = 'no total' ]
	ci <<-'END'
		bad   | 60 | echo '3 passed, 2 failed'; exit 1 |
		liar  | 60 | echo '3 passed, 0 failed'; exit 2 |
		quiet | 60 | exit 3 |
		blind | 60 | echo '1 passed, 1 failed' |
		good  | 60 | true |
	END
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = '8 passed, 5 failed' ]
	[[ $output == *"quiet: 0 passed, 1 failed, 0:"*"; alone: exit 3; its output: $BUILD/ci/quiet.log"* ]]
}

@test "ci: LONG=1 has its own commands" {
	ci LONG=1 <<<"x | 60 | exit 1 | echo '7 passed, 0 failed'"
	[ "${lines[-1]}" = '7 passed, 0 failed' ]
	ci LONG=1 <<<"x | 60 | echo '2 passed, 0 failed' |"
	[ "${lines[-1]}" = '2 passed, 0 failed' ]
}

@test "ci: no step, no success" {
	ci <<<'# nothing'
	[ "$status" -ne 0 ]
	[ "${lines[-1]}" = '0 passed, 0 failed' ]
}

@test "ci: a step has no input and not the settings of the make that started it" {
	ci MAKEFLAGS=n MODE=asan CC=none <<<'x | 60 | ! read -r x; echo "[$MAKEFLAGS$MODE$CC] $CI" |'
	[ "$status" -eq 0 ]
	[ "$(cat "$BUILD/ci/x.log")" = '[] 1' ]
}

@test "ci: a step that hangs is ended with all that it began, and the next one runs" {
	local name=ci-bats-$$-$RANDOM
	ci CI_GRACE_S=1 <<-END
		hangs | 1  | setsid bash -c "trap '' TERM; exec -a $name sleep 600" & sleep 600 |
		next  | 60 | true |
	END
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = '1 passed, 1 failed' ]
	[[ $output == *'its time was up'* ]]
	[[ $output == *"left behind"*"$name 600"* ]]
	run pgrep -f "^$name"
	[ "$status" -eq 1 ]
}

@test "ci: when the time of all is up, what is left has failed" {
	ci CI_S=0 <<<'x | 60 | true |'
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = '0 passed, 1 failed' ]
}

@test "ci: interrupted, it takes its step along" {
	local name=ci-bats-$$-$RANDOM pid
	echo "x | 600 | echo begun; setsid bash -c 'exec -a $name sleep 600' & sleep 600 |" >"$TABLE"
	"${ci_sh[@]}" "$TABLE" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	pid=$!
	until pgrep -f "^$name" >/dev/null; do sleep 0.1; done
	kill "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" = 130 ]
	run pgrep -f "^$name"
	[ "$status" -eq 1 ]
}

@test "fuzzers: every probe has a target, words of its own, and seeds" {
	cd "$BATS_TEST_DIRNAME/../.."
	for probe in probes/probe_*.c; do
		name=${probe#probes/probe_}
		name=${name%.c}
		echo "$name" # what fails
		[ -e "tests/fuzz/fuzz_$name.c" ]
		[ -n "$(ls "tests/fuzz/corpus/$name")" ]
		# shellcheck disable=SC2046 # file names without blanks
		[ "$(sh tests/fuzz/dict.sh $(sh tests/fuzz/dict.sh --sources "$name") | wc -l)" -ge 10 ]
	done
	# of shared modules and dialects, too
	# shellcheck disable=SC2046
	sh tests/fuzz/dict.sh $(sh tests/fuzz/dict.sh --sources pytorch_trace) | grep -qx '"ProfilerStep#"'
	# shellcheck disable=SC2046
	sh tests/fuzz/dict.sh $(sh tests/fuzz/dict.sh --sources train_log) | grep -qx '"reduced_train_loss:"\|"train_step_timing in s"'
}
