#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The documents are true: what README and man page tell people to type is typed here, names that they
# mention exist, links lead somewhere. Campaigns run on scheduler fake with a declared truth.
bats_require_minimum_version 1.5.0

setup() {
	FETTLE=${FETTLE:?set it to the fettle that is tested}
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	DIR=$BATS_TEST_TMPDIR/docs
	mkdir -p "$DIR/bin"
	cd "$DIR" || return 1
	# `fettle` as people type it; run on scheduler fake, where pin_memory and the mini campaign's
	# arenas help.
	echo '{"effects":{"--pin-memory":0.3,"MALLOC_ARENA_MAX=1":0.3},"sd_run":0.01}' >truth.json
	cat >bin/fettle <<-END
		#!/bin/sh
		[ "\$1" != run ] || set -- "\$@" -s fake --fake '$DIR/truth.json' -q
		exec '$FETTLE' "\$@"
	END
	chmod +x bin/fettle
	PATH=$DIR/bin:${FETTLE%/*}/recipes/workloads/mini:$PATH
	unset FETTLE_WORKSPACE FETTLE_SITE FETTLE_RECIPE_PATH
}

# The example of README.md as a file.
loader() {
	sed -n '/^```lua$/,/^```$/p' "$TOP/README.md" | sed '1d;$d' >loader.lua
	grep -q '^return {' loader.lua
}

# Lines of README.md and the guide to be typed: indented, without the remark behind two blanks or more; each once.
typed() {
	sed -n "s/^    \($1 .*\)/\1/p" "$TOP/README.md" "$TOP/docs/GUIDE.md" | sed 's/   *[^ ].*//' | awk '!seen[$0]++'
}

# Blocks to be typed of the man page's EXAMPLES.
examples() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$TOP/orchestrator/fettle.1" |
		sed -n '/^\.Bd/,/^\.Ed/p' | grep -v '^\.'
}

# Examples of pages, as a reader copies them, into files of their names: example [PAGE NAME]...
example() {
	while [ $# -gt 0 ]; do
		mandoc -T ascii "$FETTLE_BUILD/man/$1" | col -bx | sed -n "\|^ *-- $2\$|,\|^ *}\$|p" >"$2"
		shift 2
	done
}

documents() {
	(cd "$TOP" && find . -name '*.md' -not -path './build/*' -not -path './tests/golden/*' -not -path './.git/*')
}

@test "the example of README.md is fit to run" {
	loader
	run "$FETTLE" check loader.lua
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output != *warning* ]]
}

@test "the output that README.md shows stands in the published report" {
	sed -n '/^```text$/,/^```$/p' "$TOP/README.md" | sed '1d;$d' >shown
	[ "$(wc -l <shown)" -ge 5 ]
	sed 's/[*`|]//g; s/  */ /g' "$TOP/experiments/reports/h200/dataloader.md" >report
	# and the effects in its picture
	grep -oE '[-+][0-9.]+ % \[[^]]*\]' "$TOP/docs/dataloader.svg" | sort -u >>shown
	[ "$(wc -l <shown)" -ge 11 ]
	# what stands in columns of the README is a row or a sentence of the report: each piece of it
	sed 's/   */\n/g' shown | while read -r piece; do
		grep -qF -- "$piece" report || { echo "not in the report: $piece"; return 1; }
	done
}

@test "every fettle line of README.md and the guide does what it says" {
	loader
	typed fettle >lines
	[ "$(wc -l <lines)" -ge 5 ]
	# what `fettle ab` compares: quicker with A set
	printf '#!/bin/sh\n[ -n "$A" ] || sleep 0.3\nsleep 0.1\n' >x
	chmod +x x
	printf '#!/bin/sh\n#SBATCH --nodes=2\nexport NCCL_DEBUG=WARN\nsrun ./x --output-dir results\n' >train.sbatch
	while read -r line; do
		echo "\$ $line"
		sh -c "$line" </dev/null
	done <lines
}

# The fenced block of a kind in TUTORIAL.md.
fenced() {
	sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$TOP/TUTORIAL.md" | sed '1d;$d'
}

# Lines as TUTORIAL.md is held to them: every number is N, blanks are one.
blurred() {
	sed -E 's/[-+]?[0-9]+([.:][0-9]+)*(e-[0-9]+)?/N/g; s/ +/ /g; s/^ //'
}

# Of what is shown each piece between dots must have been printed, in this order: shown FILE OUTPUT
shown() {
	local line piece rest
	rest=$(blurred <"$2")
	while IFS= read -r line; do
		while [ -n "$line" ]; do
			piece=${line%%...*}
			[ "$piece" != "$line" ] && line=${line#*...} || line=
			piece=$(sed 's/^ //; s/ $//' <<<"$piece")
			[ -n "$piece" ] || continue
			[[ $rest == *"$piece"* ]] || { echo "not printed: $piece"; cat "$2"; return 1; }
			rest=${rest#*"$piece"}
		done
	done < <(blurred <"$1")
}

@test "TUTORIAL.md says what its commands print" {
	unset FETTLE_SITE
	PATH=${FETTLE%/*}:$PATH
	fenced sh >train.sbatch
	fenced json >rehearsal.json
	[ -s train.sbatch ] && [ -s rehearsal.json ]
	n=0
	sed -n 's/^    //p' "$TOP/TUTORIAL.md" >text
	printf '$ true\n' >>text
	command=true
	while IFS= read -r line <&3; do
		if [[ $line != '$ '* ]]; then
			printf '%s\n' "$line" >>expected
			continue
		fi
		echo "\$ $command"
		rc=0
		bash -c "$command" >printed 2>&1 </dev/null || rc=$?
		[ "$rc" -eq 0 ] || { cat printed; return 1; }
		[ ! -e expected ] || shown expected printed
		rm -f expected
		command=${line#'$ '}
		n=$((n + 1))
	done 3<text
	[ "$n" -gt 20 ]
	grep -q 'num-workers 4 --save-dir' train.sbatch
}

@test "the examples of the man page work" {
	ln -s "$TOP/recipes" recipes
	cp "$TOP/tests/fixtures/probes/nccl-tests-old.txt" all_reduce.log
	printf '#!/bin/bash\nsrun mini --output-dir results\n' >train.sbatch
	for n in 0 1; do gzip -c "$TOP/tests/fixtures/probes/pytorch-trace.json" >rank$n.json.gz; done
	examples | sed "s|^\* \* \* \* \* ||; s|/shared/team/fettle|$DIR/fettle-workspace|" >lines
	[ "$(grep -c '^fettle ' lines)" -ge 6 ]
	while read -r line; do
		echo "\$ $line"
		bash -c "$line" </dev/null
	done <lines
	grep -q '^MALLOC_ARENA_MAX=1$' fix.env
	grep -q '^export MALLOC_ARENA_MAX=1$' train.sbatch
}

@test "campaign(5) and knob(5) have every field of the schema, and their examples work" {
	# rows of the tables of fields, which reference_test holds equal to the schema
	awk '/^\| field \|/ { on = 1 } on && /^\| `/ { print $2 } !/^\|/ { on = 0 }' "$TOP/recipes/README.md" |
		tr -d '`' | sort >schema
	[ "$(wc -l <schema)" -gt 100 ]
	sed -n 's/^\.It Ic //p' "$FETTLE_BUILD"/man/campaign.5 "$FETTLE_BUILD"/man/knob.5 | sort -u >told
	sort -u schema | diff - told
	for page in campaign.5 knob.5; do
		mandoc -T lint -W warning "$FETTLE_BUILD/man/$page"
	done
	mkdir knobs workloads
	example campaign.5 short.lua campaign.5 whole.lua campaign.5 workloads/imagenet.lua knob.5 knobs/local_cache.lua
	"$FETTLE" check short.lua
	FETTLE_RECIPE_PATH=$DIR "$FETTLE" check whole.lua
}

@test "every command that a document names exists" {
	"$FETTLE" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' >commands
	documents | while read -r f; do
		grep -ohE '(^    |`)fettle [a-z]+' "$TOP/$f" || true
	done | sed 's/.*fettle //' | sort -u >named
	[ "$(wc -l <named)" -ge 5 ]
	grep -vxF -f commands named >unknown || true
	cat unknown
	[ ! -s unknown ]
}

@test "every make target that README.md names exists" {
	make -s -C "$TOP" help | awk '{ print $1 }' >targets
	{
		typed make
		grep -oE '`make [a-z]+' "$TOP/README.md" | tr -d '`'
	} | awk 'NF > 1 { print $2 }' | sort -u >named
	[ "$(wc -l <named)" -ge 5 ]
	grep -vxF -f targets named >unknown || true
	cat unknown
	[ ! -s unknown ]
}

@test "the dependency table of README.md agrees with deps.txt" {
	awk -F'|' '/^\| library/ { on = 1 } on && !/^\|/ { exit }
		on && !/^\|[- |]*$/ && $3 !~ /Debian/ { gsub(/ /, "", $3); print $3 }' "$TOP/README.md" |
		sort -u >told
	# what a C compiler itself needs is not told
	awk -F'|' '!/^#/ && NF == 4 && $4 ~ /build|slurm|webhook/ && $1 ~ /^header/ { gsub(/ /, "", $2); print $2 }' \
		"$TOP/tests/lint/deps.txt" | grep -vx libc6-dev | sort -u >needed
	[ -s told ]
	diff told needed
}

@test "every relative link of a document leads somewhere" {
	documents >files
	[ "$(wc -l <files)" -ge 5 ]
	while read -r f; do
		grep -oE '\]\([^)]+\)' "$TOP/$f" | sed 's/^](//; s/)$//' | while read -r link; do
			target=${link%%#*}
			case $link in
			*://* | mailto:*) continue ;;
			'#'*) target=${f##*/} ;;
			esac
			[ -e "$TOP/${f%/*}/$target" ] || echo "$f: $link"
			[[ $link != *'#'* ]] && continue
			# GitHub's name of a heading: small letters, no punctuation, dashes for blanks
			sed -n 's/^##* *//p' "$TOP/${f%/*}/$target" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-' |
				grep -qxF -- "${link#*#}" || echo "$f: $link (no such heading)"
		done || true
	done <files >dead
	cat dead
	[ ! -s dead ]
}

@test "every folder that README.md lists exists" {
	sed -n '/^## Where things are/,/^## /s/^    \([a-z]*\)\/ .*/\1/p' "$TOP/README.md" >folders
	[ "$(wc -l <folders)" -ge 5 ]
	while read -r d; do
		[ -d "$TOP/$d" ] || { echo "no folder $d"; return 1; }
	done <folders
}

# The n-th block of a language in CONTRIBUTING.md.
block() {
	awk -v open="\`\`\`$1" -v n="$2" '$0 == "```" { on = 0 } on { print } $0 == open { on = ++seen == n }' "$TOP/CONTRIBUTING.md"
}

@test "LONG: a probe is added by what CONTRIBUTING.md says, and nothing else" {
	[ -n "${LONG:-}" ] || return 0
	mkdir tree
	(cd "$TOP" && tar -cf - --exclude=./build --exclude=./.git .) | tar -C tree -xf -
	cd tree
	block def 1 >>experiments/metrics.def
	block c 1 >probes/probe_ipmi_power.c
	block text 1 >tests/fixtures/probes/ipmi-power.txt
	block c 2 >tests/unit/probe_ipmi_power_test.c
	block c 3 >tests/fuzz/fuzz_ipmi_power.c
	block tsv 1 >>tests/fixtures/samples-expected.tsv
	block messy 1 >line && sed -i '/{"ifstat", "ifstat.txt"/r line' tests/unit/probe_messy_test.c
	unset BUILD FETTLE FETTLE_BUILD
	make -s -j2 CI=1
	run -0 build/fettle probe tests/fixtures/probes/ipmi-power.txt
	[[ $output == *"node_power_w"*"214"* ]]
	build/fettle probe --list | grep ipmi_power
	for t in probe_ipmi_power probe_messy samples probe_listing; do make check-unit T=$t; done
	make check-format check-layers check-length check-spdx
}
