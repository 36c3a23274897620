#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# run.sh TAPDIR FILE... : run test programs and .bats files under prove, then print the total as
# "N passed, N failed". Each file's TAP is kept in TAPDIR. A skipped test is a failed one: what is
# missing on this machine must be seen. No test at all is a failure.
# Most tests run $TEST_JOBS at a time (3: many wait). Campaigns whose truth is planted in time then run
# alone. Files under tests/faults come last, one after the other, and beside them those under
# tests/slurm: each of these has a cluster of its own, and both wait most of the time.
set -u

if [ "$1" = --one ]; then # called by prove for one file
	name=$(basename "$2" .bats)
	log=$TAPDIR/$(echo "$2" | sed 's|.*tests/||; s|/|_|g')
	case $2 in
	*.bats) set -- bats --tap "$2" ;;
	*) # shellcheck disable=SC2086 # RUN_WITH is a command line (valgrind and its options)
		set -- ${RUN_WITH:-} "$2" ;;
	esac
	timeout -k 10 "${TEST_TIMEOUT:-900}" "$@" >"$log.tap" 2>"$log.err"
	rc=$?
	cat "$log.tap"
	if [ $rc -eq 0 ] && ! grep -qE '^(not )?ok' "$log.tap"; then # "1..0" would pass for all skipped
		echo "$name ran no test" >"$log.died"
		rc=1
	fi
	if [ $rc -ne 0 ]; then
		[ -e "$log.died" ] || grep -q '^not ok' "$log.tap" || echo "$name ended with status $rc" >"$log.died"
		# prove shows what comes on stderr
		{
			grep -h '^#' "$log.tap"
			[ ! -e "$log.died" ] || cat "$log.died"
			tail -n 60 "$log.err"
		} | sed "s/^#* */# $name: /" >&2
	fi
	exit $rc
fi

TAPDIR=$1
shift
[ $# -gt 0 ] || { echo "run.sh: no tests"; echo "0 passed, 0 failed"; exit 1; }
rm -rf "$TAPDIR"
mkdir -p "$TAPDIR"
CMOCKA_MESSAGE_OUTPUT=TAP
XDG_CONFIG_HOME=/nonexistent # the user.lua of whoever runs the tests is no part of them
export TAPDIR CMOCKA_MESSAGE_OUTPUT XDG_CONFIG_HOME

together=''
alone=''
faults=''
slurm=''
long='' # those that wait longest begin first, so that none is left at the end
slurm_long=''
for f in "$@"; do
	case $f in
	tests/slurm/sched.bats | tests/slurm/states.bats | tests/slurm/pilots.bats | tests/slurm/contract.bats) slurm_long="$slurm_long $f" ;;
	tests/slurm/*) slurm="$slurm $f" ;;
	tests/faults/*) faults="$faults $f" ;;
	tests/cli/planted.bats) alone="$alone $f" ;;
	tests/cli/planted-faults.bats | tests/cli/workloads.bats | tests/cli/agent.bats | tests/cli/bad-workloads.bats) long="$long $f" ;;
	*) together="$together $f" ;;
	esac
done
together="$long $together"
slurm="$slurm_long $slurm"
rules='--rules seq=tests/faults/**' # begun first, as rules of one kind are taken in their order
for f in $slurm; do rules="$rules --rules seq=$f"; done
rc=0
# shellcheck disable=SC2086 # lists of our own file names
{
	[ "$together" = " " ] || prove --timer -j"${TEST_JOBS:-3}" --exec "sh $0 --one" $together || rc=1
	[ -z "$alone" ] || prove --timer --exec "sh $0 --one" $alone || rc=1
	[ "$faults$slurm" = " " ] || prove --timer -j4 $rules --exec "sh $0 --one" $faults $slurm || rc=1
}

died=$(find "$TAPDIR" -name '*.died' | wc -l)
find "$TAPDIR" -name '*.tap' -exec cat {} + | awk -v died="$died" -v rc=$rc '
/^# not checked: [0-9]/ { if ($4 > 0) print "not checked:" substr($0, 15) }
/^1\.\.[0-9]+/ { plan += substr($1, 4) }
/^not ok/ { failed++; seen++ }
/^ok/ { seen++; if (tolower($0) ~ /# skip/) { failed++; print "skipped: " $0 } else passed++ }
END {
	if (plan > seen) # a program that ended before its last test
		failed += plan - seen
	else
		failed += died
	if (rc && !failed)
		failed = 1
	printf "%d passed, %d failed\n", passed, failed
	exit failed > 0 || passed == 0
}'
