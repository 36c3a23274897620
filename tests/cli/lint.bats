#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Every lint check fails on a file that breaks its rule, says where, and is content with a good one.

setup() {
	top=$BATS_TEST_DIRNAME/../..
	lint=$top/tests/lint
	cd "$BATS_TEST_TMPDIR" || return 1
}

# put PATH: a file from standard input
put() {
	mkdir -p "$(dirname "$1")"
	cat >"$1"
}

@test "layers: a probe must not see the store" {
	put probes/probe_x.c <<<'#include "experiments/db.h"'
	put probes/probe_y.c <<<'#include "experiments/model.h"'
	run sh "$lint/layers.sh" "$lint/layers.txt" probes/probe_x.c probes/probe_y.c
	[ "$status" -eq 1 ]
	[ "$output" = 'probes/probe_x.c:1: layer: must not include "experiments/db.h"' ]
}

@test "layers: base includes nothing of the rest, and the pure modules not the store" {
	put orchestrator/base/a.c <<<'#include "experiments/model.h"'
	put experiments/stats.c <<<'#include "experiments/db.h"'
	put orchestrator/method/a.c <<<'#include "orchestrator/agent/plan.h"'
	run sh "$lint/layers.sh" "$lint/layers.txt" orchestrator/base/a.c experiments/stats.c orchestrator/method/a.c
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -ge 3 ]
}

@test "layers: a library is included in one place" {
	put orchestrator/cmd/a.c <<-'C'
		#include <stdio.h>
		#include <sqlite3.h>
		#include <slurm/slurm.h>
		#include <lua.h>
		#include <cjson/cJSON.h>
	C
	put experiments/query_x.c <<<'#include <sqlite3.h>'
	run sh "$lint/layers.sh" "$lint/layers.txt" orchestrator/cmd/a.c experiments/query_x.c
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 4 ]
	[[ ${lines[0]} == orchestrator/cmd/a.c:2:*'<sqlite3.h>' ]]
}

@test "banned: a call is named with what to use instead" {
	put a.c <<-'C'
		int f(void)
		{
			/* system("in a comment") */
			puts("popen(in a string)");
			s->system(1);
			s.popen(1);
			my_system(2);
			return system ("ls");
		}
	C
	run sh "$lint/banned.sh" "$lint/banned.txt" a.c
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ ${lines[0]} == 'a.c:8: banned: system(); use proc_spawn'* ]]
}

@test "banned: a visible comment lets one name through, and only that" {
	put a.c <<-'C'
		/* lint: allow malloc because this is the allocator under test */
		void *p = malloc(1);
		char *s = strdup("x"); /* lint: allow malloc because of nothing */
	C
	run sh "$lint/banned.sh" "$lint/banned.txt" a.c
	[ "$status" -eq 1 ]
	[[ $output == 'a.c:3: banned: strdup()'* ]]
	[ "${#lines[@]}" -eq 1 ]
}

@test "length: 100 lines a function, 900 a file" {
	{
		echo 'int f(void)'
		echo '{'
		yes '	g();' | head -n 97
		echo '}'
	} | put good.c
	sed '3a\	g();' good.c | put bad.c
	yes '/* x */' | head -n 901 | put long.h
	run sh "$lint/length.sh" good.c
	[ "$status" -eq 0 ]
	[[ $output == 'functions: 1, median 100 lines'* ]]
	run sh "$lint/length.sh" bad.c long.h
	[ "$status" -eq 1 ]
	[[ $output == *'bad.c:1: length: f() has 101 lines, at most 100'* ]]
	[[ $output == *'long.h: length: 901 lines, at most 900'* ]]
}

@test "spdx: GPL-2.0-or-later, and MIT under recipes" {
	put a.c <<<'/* SPDX-License-Identifier: GPL-2.0-or-later */'
	put a.sh <<<$'#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-or-later'
	put recipes/a.lua <<<'-- SPDX-License-Identifier: MIT'
	put b.c <<<'/* SPDX-License-Identifier: GPL-3.0-only */'
	put c.c <<<'int x;'
	put recipes/b.lua <<<'-- SPDX-License-Identifier: GPL-2.0-or-later'
	run sh "$lint/spdx.sh" a.c a.sh recipes/a.lua
	[ "$status" -eq 0 ]
	run sh "$lint/spdx.sh" b.c c.c recipes/b.lua
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 3 ]
}

@test "format: what clang-format would change is named" {
	cp "$top/.clang-format" .
	put good.c <<<$'int f(void)\n{\n\treturn 0;\n}'
	put bad.c <<<$'int g;\nint f(void) { return 0; }'
	run sh "$lint/format.sh" good.c
	[ "$status" -eq 0 ]
	run sh "$lint/format.sh" good.c bad.c
	[ "$status" -eq 1 ]
	[[ $output == 'bad.c:2: format:'* ]]
	[ "${#lines[@]}" -eq 1 ]
}

@test "format: a comment that makes its line too long goes above it" {
	long=$(printf 'word %.0s' {1..20})
	put a.c <<<$'\tint x; /* short */\n\tint y; /* '"$long"$'*/\n\tputs("/* text */"); /* '"$long"'*/'
	sh "$lint/hoist.sh" a.c
	run cat a.c
	[ "${lines[0]}" = $'\tint x; /* short */' ]
	[ "${lines[1]}" = $'\t/* '"$long"'*/' ]
	[ "${lines[2]}" = $'\tint y;' ]
	[[ ${lines[3]} == $'\tputs("/* text */"); /* word '* ]] # not understood: left alone
}

@test "whitespace: blanks at the end, no last newline, notes to self" {
	put good.c <<<'int x;'
	put a.c <<<'int x; '
	printf 'int x;' | put b.c
	put c.c <<<'/* TODO: later */'
	run sh "$lint/whitespace.sh" good.c
	[ "$status" -eq 0 ]
	run sh "$lint/whitespace.sh" a.c b.c c.c
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 3 ]
}

@test "lua: a recipe with an unknown global" {
	put a.lua <<<'return pritn'
	run luacheck --config "$top/.luacheckrc" -q a.lua
	[ "$status" -ne 0 ]
}

@test "registry: in bytewise order, none twice, empty is fine" {
	run sh "$lint/registry.sh" probe probe_table probes/probe.h probes/probe_b.c probes/probe_B.c probes/probe_a.c
	[ "$status" -eq 0 ]
	[ "$(grep -c '&probe_' <<<"$output")" -eq 3 ]
	[ "$(grep -n '&probe_B' <<<"$output" | cut -d: -f1)" -lt "$(grep -n '&probe_a' <<<"$output" | cut -d: -f1)" ]
	run sh "$lint/registry.sh" probe probe_table probes/probe.h
	[ "$status" -eq 0 ]
	[[ $output == *$'[] = {\n\t0};' ]]
}

@test "migrations: a gap in the numbers fails" {
	put schema.sql <<<'SELECT "all";'
	put m/0001_init.sql <<<"CREATE TABLE \"a\\b\" (x DEFAULT 'y');"
	put m/0003_more.sql <<<'SELECT 1;'
	run sh "$lint/embed_sql.sh" schema.sql m/0001_init.sql
	[ "$status" -eq 0 ]
	[[ $output == *$'db_schema =\n\t "SELECT \\"all\\";\\n"\n;'* ]]
	[[ $output == *'CREATE TABLE \"a\\b\"'* ]]
	[[ $output == *'db_migration_count = 1;'* ]]
	run sh "$lint/embed_sql.sh" schema.sql m/0001_init.sql m/0003_more.sql
	[ "$status" -eq 1 ]
	[[ $output == *'m/0003_more.sql: its number is not the next one, 0002'* ]]
}

@test "deps: what is missing is named for Debian and for RHEL, with status 2" {
	put deps.txt <<-'T'
		prog sh            | dash        | bash         | build
		prog no-such-tool  | deb-tool    | rhel-tool    | build
		header no/such.h   | deb-dev     | rhel-devel   | build
		prog not-asked-for | other       | other        | lint
	T
	DEPS_TABLE=deps.txt run sh "$lint/deps.sh" check build
	[ "$status" -eq 2 ]
	[[ $output == *'missing: no-such-tool (Debian package: deb-tool; RHEL package: rhel-tool)'* ]]
	[[ $output == *'missing: no/such.h (Debian package: deb-dev; RHEL package: rhel-devel)'* ]]
	[[ $output == *'apt-get install --no-install-recommends deb-dev deb-tool'* ]]
	[[ $output != *'not-asked-for'* ]]
}

@test "deps: without a compiler its libraries are missing too: one list has all" {
	put deps.txt <<-'T'
		lib libc.so    | deb-so | rhel-so | build
		static libc.a  | deb-a  | rhel-a  | build
	T
	CC=no-such-compiler DEPS_TABLE=deps.txt run sh "$lint/deps.sh" check build
	[ "$status" -eq 2 ]
	[[ $output == *'apt-get install --no-install-recommends deb-a deb-so'* ]]
}

@test "deps: everything there is silence" {
	put deps.txt <<<'prog sh | dash | bash | build'
	DEPS_TABLE=deps.txt run sh "$lint/deps.sh" check build
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "deps: the packages of a purpose, each once, there or not: what another root is made of" {
	put deps.txt <<-'T'
		prog sh             | dash     | bash       | build
		header no/such.h    | deb-dev  | rhel-devel | build slurm
		header no/such2.h   | deb-dev  | rhel-devel | slurm
		prog not-asked-for  | other    | other      | lint
	T
	[ "$(DEPS_TABLE=deps.txt sh "$lint/deps.sh" packages build slurm | xargs)" = "dash deb-dev" ]
}

# fake NAME TEXT: a program NAME in ./bin, which comes first in PATH
fake() {
	mkdir -p bin
	printf '#!/bin/sh\n%s\n' "$2" >bin/"$1"
	chmod +x bin/"$1"
	PATH=$PWD/bin:$PATH
}

@test "deps: not root and no sudo: the line to ask for, and status 2" {
	put deps.txt <<<'prog no-such-tool | deb-tool | rhel-tool | build'
	fake id 'echo 1000'
	fake sudo 'exit 1'
	fake apt-get 'touch called'
	DEPS_TABLE=deps.txt run sh "$lint/deps.sh" install build
	[ "$status" -eq 2 ]
	[[ $output == *'apt-get install --no-install-recommends deb-tool'* ]]
	[ ! -e called ]
}

@test "deps: root installs what is missing, and looks again" {
	put deps.txt <<<'prog no-such-tool | deb-tool | rhel-tool | build'
	fake id 'echo 0'
	fake apt-get "echo \"\$*\" >>$PWD/called; [ \"\$1\" = update ] || printf '#!/bin/sh\\n' >$PWD/bin/no-such-tool; chmod +x $PWD/bin/*"
	DEPS_TABLE=deps.txt run sh "$lint/deps.sh" install build
	[ "$status" -eq 0 ]
	[[ $(cat called) == *'install -q -y --no-install-recommends deb-tool' ]]
	rm bin/no-such-tool
	fake apt-get 'exit 0' # says that it did, and did not
	DEPS_TABLE=deps.txt run sh "$lint/deps.sh" install build
	[ "$status" -eq 2 ]
}

@test "run.sh: the closing line counts, a skip or a crash fails, nothing run fails" {
	put tests/a.bats <<<$'@test "x" { true; }\n@test "y" { false; }'
	put tests/b.bats <<<$'@test "x" { skip "no daemon"; }'
	put tests/c.bats <<<$'@test "x" { true; }'
	put tests/d_test <<<$'#!/bin/sh\necho 1..3\necho ok 1 - x\nkill -SEGV $$'
	chmod +x tests/d_test
	# bats inside bats: without the variables and the PATH of the outer one
	clean=(env -i PATH=/usr/local/bin:/usr/bin:/bin TMPDIR="$BATS_TEST_TMPDIR" sh "$top/tests/run.sh")
	run "${clean[@]}" tap tests/c.bats
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = '1 passed, 0 failed' ]
	run "${clean[@]}" tap tests/a.bats tests/b.bats tests/c.bats "$PWD/tests/d_test"
	[ "$status" -ne 0 ]
	[ "${lines[-1]}" = '3 passed, 4 failed' ]
	run "${clean[@]}" tap
	[ "$status" -ne 0 ]
}

@test "run.sh: nothing that ends badly, or without a test, can give 0 failed" {
	put tests/good_test <<<$'#!/bin/sh\necho 1..1\necho ok 1 - x'
	put tests/none_test <<<$'#!/bin/sh\necho 1..0'
	put tests/silent_test <<<$'#!/bin/sh\nexit 0'
	put tests/leaks_test <<<$'#!/bin/sh\necho 1..1\necho ok 1 - x\nexit 1'
	put tests/short_test <<<$'#!/bin/sh\necho 1..2\necho ok 1 - x'
	put tests/stuck_test <<<$'#!/bin/sh\necho 1..2\necho ok 1 - x\nexec sleep 600'
	put tests/empty.bats <<<'# no test'
	put tests/daemon.bats <<<$'setup_file() { no-such-daemon; }\n@test "x" { true; }'
	put tests/broken.bats <<<$'@test "x" { true\n'
	chmod +x tests/*_test
	clean=(env -i PATH=/usr/local/bin:/usr/bin:/bin TMPDIR="$BATS_TEST_TMPDIR" TEST_TIMEOUT=1 sh "$top/tests/run.sh")
	for f in "$PWD"/tests/{none,silent,leaks,short,stuck,no_such}_test tests/{empty,daemon,broken}.bats; do
		run "${clean[@]}" tap "$PWD/tests/good_test" "$f"
		echo "$f: ${lines[-1]}"
		[ "$status" -ne 0 ]
		[[ ${lines[-1]} == *' passed, '[1-9]*' failed' ]]
	done
	# without what runs tests
	mkdir bin
	for f in sh awk find rm mkdir cat; do ln -s "$(command -v $f)" bin/; done
	run env -i PATH="$PWD/bin" sh "$top/tests/run.sh" tap "$PWD/tests/good_test"
	[ "$status" -ne 0 ]
	[ "${lines[-1]}" = '0 passed, 1 failed' ]
}

@test "run.sh: what a test could not check is told before the total" {
	put tests/e_test <<'EOT'
#!/bin/sh
echo 1..1
echo 'ok 1 - e'
echo '# not checked: 3 of 5 expected values'
EOT
	put tests/f_test <<'EOT'
#!/bin/sh
echo 1..1
echo 'ok 1 - f'
echo '# not checked: 0 of 5 expected values'
EOT
	chmod +x tests/e_test tests/f_test
	clean=(env -i PATH=/usr/local/bin:/usr/bin:/bin TMPDIR="$BATS_TEST_TMPDIR" sh "$top/tests/run.sh")
	run "${clean[@]}" tap "$PWD/tests/e_test" "$PWD/tests/f_test"
	[ "$status" -eq 0 ]
	[ "${lines[-2]}" = 'not checked: 3 of 5 expected values' ]
	[ "${lines[-1]}" = '2 passed, 0 failed' ]
}
