#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What recommend writes is read by what it is written for: patch, bash, shellcheck, Lmod, a TOML
# reader, the reader of nccl.conf, and the rules of NCCL's tuner plugin.
# shellcheck disable=SC2016 # `$` in scripts and messages is meant as it is
bats_require_minimum_version 1.5.0

# The fix of campaign NAME: variables and arguments of many kinds.
campaign() { # NAME COMMAND KNOBS EFFECTS [FIELD of the workload]
	cat >"$1.lua" <<-END
		return { name = "$1", workload = { command = { $2 }, workdir = "/", ${5-}
			window = { warmup_steps = 5, steps = 20 }, metrics = { file = true } },
			objective = "throughput_samples_per_s", mode = "quick", rounds = 8,
			blocks = { aa = 2, final = 2, soak = 0 },
			knobs = { $3 } }
	END
	echo "{\"effects\":{$4},\"sd_run\":0.001,\"sd_alloc\":0.001,\"fixed\":true}" >truth.json
	"$FETTLE" run "$1.lua" -s fake -q --fake truth.json >"$1.out"
}

setup_file() {
	export FETTLE_WORKSPACE=$BATS_FILE_TMPDIR/ws
	unset FETTLE_SITE FETTLE_RECIPE_PATH
	cd "$BATS_FILE_TMPDIR" || return 1
	campaign all '"python3", "train.py", "--workers", "0"' '
		{ name = "workers", arg = "--workers", values = { 4 }, default = 0, class = "neutral" },
		{ name = "pin", arg = "--pin", flag = true, values = { true }, class = "neutral" },
		{ name = "text", env = "APP_TEXT", values = { [[it'\''s "$HOME" `x` {[\;#]] }, class = "neutral" },
		{ name = "algo", env = "NCCL_ALGO", values = { "Ring" }, class = "neutral" },
		{ name = "proto", env = "NCCL_PROTO", values = { "Simple" }, class = "neutral" }' \
		'"--workers 4":0.2,"--pin":0.2,"APP_TEXT=":0.2,"NCCL_ALGO=Ring":0.2,"NCCL_PROTO=Simple":0.2'
	campaign titan '"torchrun", "train.py"' '
		{ name = "batch", arg = "--training.gc_freq", values = { 8 }, class = "neutral" },
		{ name = "comp", arg = "--compile.enable", flag = true, values = { true }, class = "neutral" },
		{ name = "mode", arg = "--training.mode", values = { [[a "b" \]] }, class = "neutral" }' \
		'"--training.gc_freq 8":0.2,"--compile.enable":0.2,"--training.mode":0.2' 'framework = "torchtitan",'
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	mkdir bin
	for p in srun torchrun; do
		printf '#!/bin/sh\necho "$0 $*"\nprintenv NCCL_ALGO NCCL_PROTO APP_TEXT\ntrue\n' >bin/$p
	done
	chmod +x bin/*
	PATH=$PWD/bin:$PATH
	TEXT='it'\''s "$HOME" `x` {[\;#'
}

# The script of stdin, patched and taken back; what it runs is in `out`.
patched() {
	set -- "${1:-s.sh}"
	cat >"$1"
	"$FETTLE" recommend all --patch "$1" >fix.patch 2>said
	"$FETTLE" recommend all --patch "$1" --reverse >back.patch 2>/dev/null
	cat fix.patch said
	cp "$1" before
	patch --dry-run "$1" fix.patch
	patch -s "$1" fix.patch
	bash -n "$1"
	shellcheck -s bash -e SC2154,SC2016 "$1"
	bash "$1" >out
	cat out
	"$FETTLE" recommend all --patch "$1" >again 2>said.again
	[ ! -s again ]
	grep -q 'has the fix: there is nothing to change' said.again
	cp "$1" after
	patch -s "$1" back.patch
	cmp "$1" before
	cp after "$1"
	patch -s -R "$1" fix.patch
	cmp "$1" before
}

@test "patch: variables before the launch, arguments on its line; one that is set is changed where it is" {
	patched <<-'END'
		#!/bin/bash
		#SBATCH --nodes=2
		export OTHER=1 NCCL_ALGO=Tree # as ever
		if [ -d data ]; then
			module load x
		fi

		srun --label \
			python3 train.py --data x --workers=0 --lr 1 2>&1

		echo over
	END
	grep -qx '+export OTHER=1 NCCL_ALGO=Ring # as ever' fix.patch
	grep -qE '^\+# fettle: campaign 1, all: .*\(\+.* on throughput_samples_per_s\)' fix.patch
	grep -qx "$PWD/bin/srun --label python3 train.py --data x --workers=4 --lr 1 --pin" out
	[ "$(sed -n 2,4p out)" = "Ring
Simple
$TEXT" ]
	[ "$(grep -c '^@@' fix.patch)" -eq 1 ]
	[ ! -s said ]
}

@test "patch: arrays, prefixes, pipes, branches, no newline at the end, a name with a blank" {
	patched 'my script.sh' <<-'END'
		#!/bin/bash
		ARGS=(
			--workers 2
			--pin
			--x "a b"
		)
		for i in 1 2; do
			echo "$i"
			true &&
				NCCL_PROTO=LL srun python3 train.py "${ARGS[@]}" |
				cat
		done
	END
	grep -qx "$PWD/bin/srun python3 train.py --workers 4 --pin --x a b" out
	grep -q '^--- my script.sh	$' fix.patch
	[ "$(sed -n 3,5p out)" = "Ring
Simple
$TEXT" ]
	printf '#!/bin/sh\ntorchrun train.py' | patched cut.sh
	grep -q 'No newline at end of file' fix.patch
	grep -qx "$PWD/bin/torchrun train.py --pin --workers 4" out
}

@test "patch: every script of the fixtures is patched, stays bash, and is taken back to the byte" {
	n=0
	for f in "$BATS_TEST_DIRNAME"/../fixtures/sbatch/*.sbatch; do
		cp "$f" s.sh
		"$FETTLE" recommend all --patch s.sh --launch "$(grep -n 'learner.py' "$f" | cut -d: -f1)" >fix.patch 2>said ||
			"$FETTLE" recommend all --patch s.sh >fix.patch 2>said
		echo "$f" && cat fix.patch said
		patch -s s.sh fix.patch
		bash -n s.sh
		[ -z "$("$FETTLE" recommend all --patch s.sh --launch "$(grep -n 'learner.py' s.sh | cut -d: -f1)" 2>/dev/null ||
			"$FETTLE" recommend all --patch s.sh 2>/dev/null)" ]
		patch -s -R s.sh fix.patch
		cmp s.sh "$f"
		n=$((n + 1))
	done
	[ "$n" -ge 8 ]
}

@test "patch: bash -c, pyxis and apptainer get what reaches the program inside" {
	printf '#!/bin/bash\nsrun --container-image=i --container-env=A bash -c "cd / && python3 train.py"\n' | patched
	grep -qx "$PWD/bin/srun --container-image=i --container-env=A,APP_TEXT,NCCL_ALGO,NCCL_PROTO bash -c cd / && python3 train.py --pin --workers 4" out
	printf '#!/bin/bash\nsrun apptainer exec i.sif python3 train.py\n' | patched
	grep -qx '+export APPTAINERENV_NCCL_ALGO=Ring' fix.patch
	printf '#!/bin/bash\nsrun --container-image=i python3 train.py\n' | patched
	grep -q -- 'bin/srun --container-env=.* --container-image=i python3 train.py --pin --workers 4' out
}

@test "patch: what is given behind the launcher wins, so it is changed there" {
	for line in 'srun env NCCL_ALGO=Tree' 'mpirun -x NCCL_ALGO=Tree' 'srun --ntasks 1 /usr/bin/env -i NCCL_ALGO=Tree A=1'; do
		printf '#!/bin/bash\n%s python3 train.py\n' "$line" >s.sh
		"$FETTLE" recommend all --patch s.sh >fix.patch 2>/dev/null
		grep -q "^+${line/Tree/Ring} python3 train.py" fix.patch
		run ! grep -q 'export NCCL_ALGO' fix.patch
		patch -s s.sh fix.patch
		"$FETTLE" recommend all --patch s.sh 2>&1 | grep -q 'has the fix'
	done
}

@test "patch: what cannot be put into the script is said, in the script too" {
	printf '#!/bin/bash\nsrun --export=NONE,A=1 python3 train.py\n' >s.sh
	"$FETTLE" recommend all --patch s.sh >fix.patch 2>said
	cat fix.patch said
	grep -q 'not in here: NCCL_ALGO=Ring: line 2: --export=NONE,A=1 decides what the program gets' said
	grep -q '^+# fettle: not in here: NCCL_ALGO=Ring: line 2' fix.patch
	run ! grep -q '^+export' fix.patch
	patch -s s.sh fix.patch
	bash s.sh | grep -q 'train.py --pin --workers 4'
	# what sbatch hands on, srun hands on: without the variables that the script exports
	for head in '#SBATCH --export=NONE' 'export SLURM_EXPORT_ENV=NONE'; do
		printf '#!/bin/bash\n%s\nexport NCCL_ALGO=Ring\nsrun python3 train.py\n' "$head" >s.sh
		"$FETTLE" recommend all --patch s.sh >fix.patch 2>said
		grep -q 'not in here: NCCL_ALGO=Ring: --export=NONE of the job .* unset SLURM_EXPORT_ENV before line 4' said
	done
	printf '#!/bin/bash\n#SBATCH --export=NONE\nunset SLURM_EXPORT_ENV\nsrun python3 train.py\n' >s.sh
	"$FETTLE" recommend all --patch s.sh 2>said | grep -q '^+export NCCL_ALGO=Ring'
	for line in 'env -u NCCL_ALGO python3' 'env "NCCL_ALGO=Tree" python3' 'bash -c "NCCL_ALGO=Tree python3 train.py"'; do
		printf '#!/bin/bash\nsrun %s train.py\n' "$line" >s.sh
		"$FETTLE" recommend all --patch s.sh 2>&1 >/dev/null |
			grep -q 'not in here: NCCL_ALGO=Ring: line 2 sets or unsets it where the program is started'
	done
	# the script is the user's: it is only read
	chmod 400 s.sh
	"$FETTLE" recommend all --patch s.sh >/dev/null 2>&1
	printf '#!/bin/bash\npython3 other.py\n' >o.sh
	"$FETTLE" recommend all --patch o.sh 2>&1 >/dev/null | grep -q 'o.sh:2 launches other.py, and the campaign measured python3'
	printf '#!/bin/bash\nsrun python3 a.py\nsrun python3 b.py\n' >two.sh
	run -2 "$FETTLE" recommend all --patch two.sh
	[[ $output == *'it launches several programs, on lines 2 (a.py), 3 (b.py)'*'--launch LINE'* ]]
	"$FETTLE" recommend all --patch two.sh --launch 3 2>/dev/null | grep -q '^-srun python3 b.py$'
	printf '#!/bin/bash\necho\n' >none.sh
	run -2 "$FETTLE" recommend all --patch none.sh
	run -4 "$FETTLE" recommend all --patch absent.sh
	run -2 "$FETTLE" recommend all --patch s.sh --as env
	run -2 "$FETTLE" recommend all --reverse
}

@test "a campaign of a Python program is read again and packed, too" {
	cp -a "$FETTLE_WORKSPACE" ws
	"$FETTLE" reparse all -w ws
	"$FETTLE" archive all -w ws
}

@test "nccl: NCCL's own file, as our reader of nccl.conf takes it" {
	"$FETTLE" recommend all --as nccl -o nccl.conf 2>said
	cat nccl.conf said
	[ "$(grep -v '^#' nccl.conf)" = 'NCCL_ALGO=Ring
NCCL_PROTO=Simple' ]
	"$FETTLE" check nccl.conf
	grep -q 'not in here: APP_TEXT=.*: a variable of the job' said
	grep -qxF 'fettle: not in here: --workers 4: on the launch line (--patch SCRIPT)' said
	grep -q '^# not in here: --pin' nccl.conf
	run -4 "$FETTLE" recommend titan --as nccl
	[[ $output == *'no setting of the fix is a variable of NCCL'* ]]
}

@test "tuner: lines that NCCL's example plugin takes, none of 256 bytes or more" {
	"$FETTLE" recommend all --as tuner >tuner.csv 2>said
	cat tuner.csv said
	awk 'length($0) > 250 { exit 1 }' tuner.csv
	# its parser: lines with # are remarks, eight to ten fields, known words, numbers
	grep -v '^#' tuner.csv | awk -F, '
		NF < 8 || NF > 10 { exit 1 }
		$1 !~ /^(broadcast|reduce|allgather|reducescatter|allreduce)$/ { exit 1 }
		$4 !~ /^(tree|ring|collnet_direct|collnet_chain|nvls|nvls_tree|pat)$/ { exit 1 }
		$5 !~ /^(ll|ll128|simple)$/ { exit 1 }
		$2 !~ /^[0-9]+$/ || $3 !~ /^[0-9]+$/ || $6 !~ /^-?[0-9]+$/ || $7 !~ /^-?[0-9]+$/ || $8 !~ /^-?[0-9]+$/ { exit 1 }
		{ n++ } END { exit n != 5 }'
	grep -qx 'allreduce,0,18446744073709551615,ring,simple,-1,-1,-1' tuner.csv
	grep -q 'not in here: the number of channels' said
	run -4 "$FETTLE" recommend titan --as tuner
}

@test "torchtitan: sections that a TOML reader takes" {
	"$FETTLE" recommend titan --as torchtitan >t.toml
	cat t.toml
	[ "$(/usr/bin/python3 -c 'import json, tomllib; print(json.dumps(tomllib.load(open("t.toml", "rb")), sort_keys=True))')" = \
		'{"compile": {"enable": true}, "training": {"gc_freq": 8, "mode": "a \"b\" \\"}}' ]
	run -4 "$FETTLE" recommend all --as torchtitan
}

# What a shell has after Lmod loaded the file and after it took it back.
module_values() {
	bash -c '
		lmod() { eval "$(/usr/share/lmod/lmod/libexec/lmod bash "$@")"; }
		export NCCL_PROTO=before
		lmod use "$PWD/modules"
		lmod load fix
		printf "%s|%s|%s\n" "$NCCL_ALGO" "$NCCL_PROTO" "$APP_TEXT"
		lmod unload fix
		printf "%s|%s\n" "${NCCL_ALGO-gone}" "${APP_TEXT-gone}"'
}

@test "lmod and tcl: Lmod loads and unloads the module" {
	mkdir modules
	"$FETTLE" recommend all --as lmod 2>said >modules/fix.lua
	grep -q 'not in here: --pin: on the launch line' said
	module_values >lua.out
	rm modules/fix.lua
	"$FETTLE" recommend all --as tcl >modules/fix 2>/dev/null
	module_values >tcl.out
	cat lua.out tcl.out
	[ "$(head -1 lua.out)" = "Ring|Simple|$TEXT" ]
	[ "$(tail -1 lua.out)" = 'gone|gone' ]
	cmp lua.out tcl.out
}

@test "env: set -a reads it; an unknown form names them all" {
	"$FETTLE" recommend all -o fix.env
	[ "$(bash -c 'set -a; . ./fix.env; printenv APP_TEXT')" = "$TEXT" ]
	run -2 "$FETTLE" recommend all --as tunr
	[[ $output == *'there are config, env, json, lmod, nccl, sbatch, tcl, torchtitan, tuner; did you mean "tuner"?'* ]]
}
