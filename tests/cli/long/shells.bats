#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Completion in zsh and fish themselves (bash: tests/cli/commands.bats): what is offered is compared
# with what the program answers. LONG=1.

setup() {
	TOP=$(cd "$BATS_TEST_DIRNAME/../../.." && pwd)
	PATH=${FETTLE%/*}:$PATH
	unset FETTLE_WORKSPACE FETTLE_RECIPE_PATH FETTLE_SITE
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir fpath nights
	touch a.lua b.csv
	cp "$TOP/orchestrator/fettle.zsh" fpath/_fettle
}

# The words of the line, as the program is asked for them; then those that it offers, in one line.
answer() {
	fettle complete -- "$@" | cut -f1 | sort -u | paste -sd' '
}

# What fish offers behind the line.
in_fish() {
	fish --no-config -c "source '$TOP/orchestrator/fettle.fish'; complete -C '$1'" | cut -f1 | sort -u | paste -sd' '
}

# What zsh hands to its list when Tab is pressed behind the line: an interactive one, on a terminal of
# its own, whose `compadd` writes down what matches.
in_zsh() {
	rm -f offered
	: >offered
	timeout 60 zsh -f -c '
		zmodload zsh/zpty
		zpty z env TERM=dumb zsh -f -i
		await() { local all= l; while zpty -r z l; do all+=$l; [[ $all == *$1* ]] && break; done; : }
		zpty -w z "fpath=($PWD/fpath \$fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; bindkey \"^I\" complete-word"
		zpty -w z "compadd() { local -a a; builtin compadd -O a \"\$@\"; print -rl -- \$a >>$PWD/offered; builtin compadd \"\$@\" }"
		zpty -w z "ready() { BUFFER=; print \"MARK\"\"ED\" }; zle -N ready; bindkey \"^X\" ready; print READ\"\"Y"
		await READY
		zpty -w -n z "$1"$'"'\\t\\x18'"'
		await MARKED' zsh "$1"
	sed '/^$/d' offered | sort -u | paste -sd' '
}

# LINE WORDS...: both shells offer behind LINE what the program answers for WORDS, and that is something.
same() {
	local line=$1 want
	shift
	want=$(answer "$@")
	[ -n "$want" ]
	for shell in fish zsh; do
		got=$("in_$shell" "$line")
		echo "$shell: $line: $got (the program: $want)"
		[ "$got" = "$want" ]
	done
}

@test "zsh and fish offer the same as the program: commands, options, values, words of a command" {
	same 'fettle re' re
	same 'fettle help st' help st
	same 'fettle report --' report --
	same 'fettle report --format ' report --format ''
	same 'fettle recommend --as=s' recommend --as=s
	same 'fettle probe -a meg' probe -a meg
	same 'fettle run -s slurm' run -s slurm
	same 'fettle history im' history im
	same 'fettle history import --d' history import --d
	same 'fettle regressions a' regressions a
	same 'fettle knobs explain NCCL_IB_' knobs explain NCCL_IB_
}

@test "zsh and fish offer files, directories and recipes of the shell's own finding" {
	for shell in fish zsh; do
		[ "$("in_$shell" 'fettle history import b')" = b.csv ]
		[ "$("in_$shell" 'fettle run a')" = a.lua ]
		[ "$("in_$shell" 'fettle nightly n' | tr -d /)" = nights ]
		[ -z "$("in_$shell" 'fettle nonsense x')" ]
	done
}

@test "zsh and fish offer the campaigns of the workspace" {
	printf 'time,tokens_per_s,workload\n2026-10-10T22:00:00Z,100,gpt\n' >runs.csv
	fettle history import runs.csv
	same 'fettle history 1' history 1
}
