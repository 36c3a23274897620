#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# make install without root, in a tree that is moved afterwards; make uninstall; make dist.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	# The build under test, which other tests use meanwhile: nothing in it may be made anew.
	# BUILD and MODE come from the make that started us.
}

# In an environment without make's own variables: this is not part of the run that started the tests.
quiet_make() {
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s \
		VERSION="$("$FETTLE" --version | cut -d' ' -f2)" "$@"
}

@test "an installed tree works, and works when it was moved" {
	prefix=$BATS_TEST_TMPDIR/a
	before=$(stat -c %Y.%i "$FETTLE")
	quiet_make install PREFIX="$prefix"
	[ "$(stat -c %Y.%i "$FETTLE")" = "$before" ]
	strings "$prefix/bin/fettle" | grep -q "^$prefix/share/fettle" # the place of last resort
	[ -x "$prefix/bin/fettle" ]
	[ -r "$prefix/share/fettle/recipes/LICENSE" ]
	for p in "$FETTLE_BUILD"/fettle-*; do
		[ -x "$p" ] && [ -f "$p" ] || continue
		[ -x "$prefix/libexec/fettle/${p##*/}" ]
	done
	mv "$prefix" "$BATS_TEST_TMPDIR/b"
	cd /
	mkdir -p "$BATS_TEST_TMPDIR/b/etc/fettle"
	echo 'return { caps = { trials = 10 } }' >"$BATS_TEST_TMPDIR/b/etc/fettle/site.lua"
	run env -u FETTLE_SITE "$BATS_TEST_TMPDIR/b/bin/fettle" doctor
	[[ $output == *'site policy'*"$BATS_TEST_TMPDIR/b/etc/fettle/site.lua"* ]]
	run env FETTLE_SITE= "$BATS_TEST_TMPDIR/b/bin/fettle" doctor
	[[ $output != *'site policy'* ]]
	run "$BATS_TEST_TMPDIR/b/bin/fettle" --version
	[ "$status" -eq 0 ]
	run "$BATS_TEST_TMPDIR/b/bin/fettle" knobs
	[ "$status" -eq 0 ]
	run "$BATS_TEST_TMPDIR/b/bin/fettle" report --lang xx # its own translations
	[ "$status" -eq 2 ]
	[[ $output == *'en, zh_CN'* ]]
	# its own recipes, not those of the sources
	echo 'syntax error here' >"$BATS_TEST_TMPDIR/b/share/fettle/recipes/lib/prelude.lua"
	run "$BATS_TEST_TMPDIR/b/bin/fettle" knobs
	[ "$status" -eq 2 ]
	[[ $output == *"$BATS_TEST_TMPDIR/b/share/fettle/recipes/lib/prelude.lua:1:"* ]]
}

@test "DESTDIR stages man pages and completions too, and uninstall takes away what install put there" {
	stage=$BATS_TEST_TMPDIR/stage
	quiet_make install DESTDIR="$stage" PREFIX=/usr
	[ -x "$stage/usr/bin/fettle" ]
	for page in orchestrator/*.[1-9] campaign.5 knob.5; do
		[ -r "$stage/usr/share/man/man${page##*.}/${page##*/}" ] || { echo "not there: $page"; return 1; }
	done
	for f in bash-completion/completions/fettle zsh/site-functions/_fettle fish/vendor_completions.d/fettle.fish; do
		[ -r "$stage/usr/share/$f" ] || { echo "not there: $f"; return 1; }
	done
	[ -r "$stage/usr/share/locale/zh_CN/LC_MESSAGES/fettle.mo" ]
	# what a site put beside it stays
	echo 'return {}' >"$stage/usr/share/fettle/site.lua"
	quiet_make uninstall DESTDIR="$stage" PREFIX=/usr
	[ "$(find "$stage" ! -type d)" = "$stage/usr/share/fettle/site.lua" ]
	[ ! -e "$stage/usr/libexec/fettle" ]
	[ ! -e "$stage/usr/share/fettle/recipes" ]
}

@test "the agent is static and below 2 MB: it is copied to compute nodes" {
	quiet_make install PREFIX="$BATS_TEST_TMPDIR/x"
	agent=$BATS_TEST_TMPDIR/x/libexec/fettle/fettle-agent
	if [ "$MODE" = release ]; then # others carry what finds bugs
		[ "$(stat -c %s "$agent")" -lt 2000000 ]
		run file -b "$agent"
		[[ $output == *'statically linked'* ]]
		[[ $output != *'not stripped'* ]]
	fi
	"$agent" --version
}

@test "help lists the targets" {
	run quiet_make help
	[ "$status" -eq 0 ]
	for t in all test ci demo lint install dist deb rpm asan coverage valgrind fuzz bench clean; do
		grep -q "^  $t " <<<"$output" || { echo "not listed: $t"; return 1; }
	done
}

@test "an unknown mode is refused with the list of those there are" {
	run env -u MAKEFLAGS make MODE=fast help
	[ "$status" -eq 2 ]
	[[ $output == *'MODE=fast: expected one of release debug asan coverage fuzz'* ]]
}

# cc_where STATUS: a compiler that includes slurm.h with this status, whatever this machine has
cc_where() {
	printf '#!/bin/sh\ncase "$*" in *slurm/slurm.h*) exit %d ;; esac\nexec cc "$@"\n' "$1" >"$BATS_TEST_TMPDIR/cc"
	chmod +x "$BATS_TEST_TMPDIR/cc"
}

@test "without slurm.h all but fettle-slurm is built, and make says what is missing" {
	cc_where 1
	run quiet_make -n CC="$BATS_TEST_TMPDIR/cc" all # only what would be done
	[ "$status" -eq 0 ]
	[[ $output == *'fettle-slurm is left out: slurm/slurm.h is missing (Debian package: libslurm-dev; RHEL package: slurm-devel)'* ]]
	[[ $output == *'orchestrator/sched/slurm_cli.o'* ]]
	[[ $output != *'orchestrator/slurm/'* ]]
	[[ $output != *-lslurm* ]]
	cc_where 0
	run quiet_make -n CC="$BATS_TEST_TMPDIR/cc" all
	[[ $output != *'left out'* ]]
	[[ $output == *'orchestrator/slurm/'*-lslurm* ]]
}
