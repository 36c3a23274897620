#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle init: campaigns from scripts of the kinds that people have, and what it refuses. FETTLE_UPDATE=1 writes the golden files.
# shellcheck disable=SC2016,SC2030,SC2031 # texts of scripts; variables of one test
bats_require_minimum_version 1.5.0

setup() {
	FETTLE=${FETTLE:-$BATS_TEST_DIRNAME/../../build/release/fettle}
	SCRIPTS=$BATS_TEST_DIRNAME/../fixtures/sbatch
	GOLDEN=$BATS_TEST_DIRNAME/../golden/init
	unset FETTLE_SITE FETTLE_RECIPE_PATH
	cd "$BATS_TEST_TMPDIR" || return 1
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
}

# What the copy has of the script's lines, against these.
changes() {
	sed '/^# Written by/d; /^# \[fettle\] -/,/^# \[fettle\] end/d' "${1%.sbatch}.fettle.sh" | diff "$1" - | sed '/^[0-9]/d'
}

same() { # GOLDEN OUTPUT
	[ -z "${FETTLE_UPDATE:-}" ] || cp "$2" "$GOLDEN/$1"
	diff "$GOLDEN/$1" "$2"
}

# A script with this body, and SBATCH options with --nodes=1 before it: script BODY [OPTIONS]
script() {
	printf '#!/bin/bash\n#SBATCH --nodes=1 %s\n%s\n' "${2:-}" "$1" >s.sbatch
}

refuses() { # ARGUMENTS... -- TEXT
	local args=()
	while [ "$1" != -- ]; do args+=("$1"); shift; done
	run "$FETTLE" init s.sbatch "${args[@]}"
	echo "$output"
	[ "$status" -eq 2 ]
	[[ $output == *"$2"* ]]
	[ ! -e s.lua ] && [ ! -e s.fettle.sh ]
}

@test "scripts of all kinds: the campaign, what changes in the script, or why not" {
	cp "$SCRIPTS"/*.sbatch .
	local f n=0
	for f in *.sbatch; do
		rc=0
		"$FETTLE" init "$f" >out 2>err || rc=$?
		if [ -e "${f%.sbatch}.lua" ]; then
			[ $rc = 0 ]
			same "${f%.sbatch}.lua" "${f%.sbatch}.lua"
			changes "$f" >changed || true
			same "${f%.sbatch}.diff" changed
			bash -n "${f%.sbatch}.fettle.sh"
			[ -x "${f%.sbatch}.fettle.sh" ]
			# fit to run, and to be planned
			run "$FETTLE" check "${f%.sbatch}.lua"
			[ "$status" -eq 0 ] || { echo "$output"; return 1; }
			run "$FETTLE" plan --offline "${f%.sbatch}.lua"
			[ "$status" -eq 0 ] || { echo "$output"; return 1; }
		else
			[ $rc = 2 ]
			same "${f%.sbatch}.refused" err
		fi
		n=$((n + 1))
	done
	[ $n -ge 11 ]
}

@test "what stands in the way is named, all of it, with its line" {
	script 'srun python t.py' '--core-spec=2 --ndoes=3'
	refuses -- 's.sbatch:2: --core-spec=2: fettle cannot ask for this; --drop core-spec leaves it out'
	[[ $output == *'s.sbatch:2: sbatch has no option --ndoes=3; did you mean --nodes?'* ]]
	[[ $output == *'s.sbatch:3: no argument of t.py says where it saves'* ]]
	script 'python t.py --out x
rm -rf x'
	"$FETTLE" init s.sbatch >/dev/null && rm s.lua s.fettle.sh # behind the launch it does not run
	while IFS='|' read -r body said; do
		script "$(printf '%b' "$body")"
		refuses -- "$said"
	done <<-'END'
		rm -rf old\npython t.py --out x|s.sbatch:3: rm takes away what is not the trial's: leave the line out with --skip 3
		sbatch next.sh\npython t.py --out x|s.sbatch:3: sbatch in every trial: leave the line out with --skip 3
		echo hello|s.sbatch:1: no line of it starts a program that fettle knows how to find
		python a.py --out x\npython b.py --out x|s.sbatch:1: it launches several programs, on lines 3 (a.py), 4 (b.py)
		srun --export=NONE python t.py --out x|s.sbatch:3: --export=NONE keeps what the campaign sets from the program
		srun bash -c "$CMD" --out x|s.sbatch:3: what it launches cannot be told without a shell
		srun bash -c "python t.py --out x" a b|s.sbatch:3: what bash -c runs must stand there as one text in quotes
		srun bash -c "bash -c 'python t.py --out x'"|s.sbatch:3: what bash -c runs must stand there as one text in quotes
		enroot start img python t.py --out x|s.sbatch:3: enroot start takes no variables from outside
		srun bash <<E\npython t.py --out x\nE|s.sbatch:1: no line of it starts a program
		C="--container-image=i --container-mounts=/a:/a"\nsrun $C python t.py --out x|--container-mounts must stand on the launch line itself
	END
	printf '#!/usr/bin/env python3\n#SBATCH -N1\nimport torch\n' >s.sbatch
	refuses -- 's.sbatch:1: no line of it starts'
	script 'python t.py --out x' '--ntasks=3 --nodes=2'
	refuses -- 's.sbatch:2: --ntasks=3 on 2 nodes: fettle puts equally many ranks on each node'
	printf 'python t.py\n' >s.sbatch
	refuses -- 's.sbatch:1: not a batch script'
	refuses --launch 7 -- 's.sbatch:1: not a batch script'
	script 'python t.py --out x'
	refuses --launch 9 -- 's.sbatch:9: --launch: no launch stands on this line; there is one on line 3 (t.py)'
	run "$FETTLE" init nothing.sbatch
	[ "$status" -ne 0 ]
	[[ $output == *nothing.sbatch* ]]
}

@test "what was refused can be allowed: lines left out, options dropped, one launch of several, an argument that saves" {
	script 'rm -rf old
python a.py --out x
python b.py --results y z' '--core-spec=2'
	run "$FETTLE" init s.sbatch --drop core-spec --skip 3 --launch 5 --save-arg results -o out.lua -s local
	echo "$output"
	[ "$status" -eq 0 ]
	grep -q '^:$' out.fettle.sh
	grep -q -- '--results "$FETTLE_CKPT_DIR"' out.fettle.sh
	grep -q 'scheduler = "local"' out.lua
	run "$FETTLE" init s.sbatch --drop core-spec --skip 3 --launch 5 --saves-nothing -o out.lua
	[ "$status" -eq 2 ]
	[[ $output == *'out.lua is there already: --force writes over it'* ]]
	"$FETTLE" init s.sbatch --drop core-spec --skip 3 --launch 5 --saves-nothing -o out.lua --force
	run ! grep -q 'results.*CKPT' out.fettle.sh
}

# run_copy: the copy as the agent would start it; its program is `python`, which shows what it got
run_copy() {
	mkdir -p bin ckpt
	printf '#!/bin/bash\necho "args: $*"\nenv | grep -E "^(NCCL_|OMP_|APPTAINERENV_|APPTAINER_BIND|SLURM_)" | sort\n' >bin/python
	cp bin/python bin/apptainer
	printf '#!/bin/bash\nwhile [[ $1 == -* ]]; do echo "srun: $1"; shift; done\nexec "$@"\n' >bin/srun
	chmod +x bin/*
	env PATH="$PWD/bin:$PATH" FETTLE_CKPT_DIR=/trial/ckpt FETTLE_TRIAL_DIR=/trial FETTLE_METRICS=/trial/m FETTLE_TRIAL=t:1 \
		FETTLE_SET="NCCL_ALGO NCCL_GONE NCCL_PROTO" NCCL_ALGO=campaign NCCL_PROTO='^LL128 x' "$@"
}

@test "the copy: the campaign's settings and arguments hold, whatever the script says; saving is redirected" {
	script 'set -euo pipefail
export NCCL_ALGO=script NCCL_GONE=script NCCL_KEPT=script
ARGS=(--lr 0.1 --out /results)
NCCL_PROTO=prefix python t.py "${ARGS[@]}" "$1" --num-workers 2 > log.txt 2>&1 | tee all.log
touch after' '--array=3-5 --cpus-per-task=4'
	"$FETTLE" init s.sbatch 'two words'
	run_copy ./s.fettle.sh --num-workers 8 >out
	cat out
	[ "$(head -n 1 out)" = 'args: t.py --lr 0.1 --out /results two words --num-workers 2 --num-workers 8 --out /trial/ckpt' ]
	[ "$(grep ^NCCL_ out | paste -sd' ')" = 'NCCL_ALGO=campaign NCCL_KEPT=script NCCL_PROTO=^LL128 x' ]
	grep -qx SLURM_ARRAY_TASK_ID=3 out
	grep -qx SLURM_CPUS_PER_TASK=4 out
	[ ! -e after ] && [ ! -e log.txt ] && [ ! -e all.log ]
	# outside of a trial it does nothing
	run ./s.fettle.sh
	[ "$status" -ne 0 ]
	[[ $output == *'fettle starts this script'* ]]
}

@test "the copy: bash -c, pyxis and apptainer get arguments, variables and the trial's directory" {
	script 'M=/a:/a
srun --container-image=x --container-mounts="$M" --output=o.log bash -c "cd / && python t.py --out=/r"'
	"$FETTLE" init s.sbatch --force
	run_copy ./s.fettle.sh --fast >out
	cat out
	grep -qx 'srun: --container-mounts=/a:/a,/trial:/trial' out
	grep -qx 'srun: --container-env=FETTLE_TRIAL,FETTLE_METRICS,FETTLE_CKPT_DIR,NCCL_ALGO,NCCL_GONE,NCCL_PROTO' out
	run ! grep -q -- '--output' out
	grep -qx 'args: t.py --out=/r --fast --out=/trial/ckpt' out
	script "srun bash -c 'python t.py --out=\"\$HOME\"; '"
	"$FETTLE" init s.sbatch --force
	run_copy ./s.fettle.sh --fast >out
	grep -qx "args: t.py --out=$HOME --fast --out=/trial/ckpt" out
	script 'export NCCL_GONE=1
apptainer exec --nv i.sif python t.py --ckpt-dir c'
	"$FETTLE" init s.sbatch --force
	run_copy ./s.fettle.sh >out
	cat out
	grep -qx 'args: exec --nv i.sif python t.py --ckpt-dir c --ckpt-dir /trial/ckpt' out
	grep -qx APPTAINERENV_NCCL_ALGO=campaign out
	grep -qx APPTAINER_BIND=/trial out
	run ! grep -q NCCL_GONE out
}

@test "a campaign elsewhere runs where the script would; its result goes into the script, not into the copy" {
	mkdir tuned
	script 'python t.py --out x --num-workers 0'
	"$FETTLE" init s.sbatch -o tuned/t.lua
	grep -qF "command = { \"$PWD/tuned/t.fettle.sh\", \"--num-workers\", \"0\" }" tuned/t.lua
	grep -qF "workdir = \"$PWD\"" tuned/t.lua
	"$FETTLE" check tuned/t.lua
	script 'python t.py --out x' "--chdir=$PWD/tuned"
	"$FETTLE" init s.sbatch
	grep -qF "workdir = \"$PWD/tuned\"" s.lua
	echo '{"effects":{"MALLOC_ARENA_MAX=1":0.3,"--num-workers 1":0.1},"sd_run":0.01,"fixed":true}' >truth.json
	"$FETTLE" run -q -s fake --fake truth.json tuned/t.lua
	run "$FETTLE" recommend --as sbatch
	[ "$status" -eq 2 ]
	[[ $output == *"a copy of your script for its trials: --patch SCRIPT puts the fix into the script itself"* ]]
	script 'python t.py --out x --num-workers 0'
	"$FETTLE" recommend --patch s.sbatch | patch -s s.sbatch
	grep -qx 'export MALLOC_ARENA_MAX=1' s.sbatch
	grep -qx 'python t.py --out x --num-workers 0' s.sbatch
	"$FETTLE" recommend --as env -o fix.env
	cat fix.env
	grep -qx 'MALLOC_ARENA_MAX=1' fix.env
	grep -qx '# --num-workers 0' fix.env
	run ! grep -q 'fettle.sh' fix.env
}

@test "secrets of the script are named, never written into the campaign" {
	script 'export WANDB_API_KEY=abc123 HF_TOKEN=def456
python t.py --out x'
	"$FETTLE" init s.sbatch
	grep -q 'secrets = { "WANDB_API_KEY", "HF_TOKEN" }' s.lua
	run ! grep -q 'abc123\|def456' s.lua
}
