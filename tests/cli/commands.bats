#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# probe, knobs and doctor; help, man page and completion against the table of commands.
# shellcheck disable=SC2016 # the backquotes of the messages are meant as they are

setup() {
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	FIX=$TOP/tests/fixtures/probes
	unset FETTLE_WORKSPACE FETTLE_RECIPE_PATH FETTLE_SITE
	cd "$BATS_TEST_TMPDIR" || return 1
}

commands() {
	"$FETTLE" --help | sed -n 's/^  \([a-z][a-z-]*\)  *[a-z].*/\1/p'
}

# The long options of a command, as its source names them; drive.c, terminal.c and outlets.c have those of its children.
options_of() {
	local f=$TOP/orchestrator/cmd/cmd_$1.c

	grep -v OPTION_HIDDEN "$f" | grep -oE "\{\"[a-z-]+\", ('.'|OPT_[A-Z_]+), " | sed 's/{"\([a-z-]*\)".*/\1/'
	grep -q drive_argp "$f" && echo workspace scheduler json quiet take-over color
	grep -q terminal_argp "$f" && echo color
	grep -q look_argp "$f" && echo workspace json
	grep -q outlets_argp "$f" && echo metrics webhook-url-file webhook-url-env
	true
}

# -- probe -------------------------------------------------------------------------------------

@test "probe: finds the reader by itself, prints values, facts and status" {
	run "$FETTLE" probe "$FIX/nccl-h200.log"
	[ "$status" -eq 0 ]
	[[ $output == *'nccl.version = '* ]]
	[[ ${lines[-1]} == *': ok (nccl_log): '* ]]
	run "$FETTLE" probe "$FIX/nanogpt.txt"
	[ "$status" -eq 0 ]
	[[ $output == *'step_time_ms '*' ms'* ]]
}

@test "probe: a table of the metrics, what was ignored and why, how much of the text was used" {
	run "$FETTLE" probe "$FIX/messy-mixed-stream.txt"
	[ "$status" -eq 0 ]
	[[ ${lines[0]} == metric*n*mean*min*max*last*unit ]]
	[[ $output == *'step_time_ms '*' 2 '*' 142256 '*' 129029 '*' 155484 '*' 129029  ms'* ]]
	[[ $output == *'grad_norm '*'(2 without a value: inf)'* ]]
	[[ $output == *'ignored: 1 time: SamplesPerSec is cut or holds no number; line 5: '*'1292,64'* ]]
	[[ ${lines[-1]} == *': partial (train_log): '*', from 5 of 10 lines; 4 bad lines, the first is line 2'* ]]
}

@test "probe: a text of several formats is read as the best and names the others" {
	run "$FETTLE" probe "$FIX/nccl-x2.log"
	[ "$status" -eq 0 ]
	[[ ${lines[-2]} == 'also of format nccl_log (--as NAME reads it so)' ]]
	[[ ${lines[-1]} == *': ok (nccl_tests): '* ]]
	[ "$("$FETTLE" probe --json "$FIX/nccl-x2.log" | tail -1 | jq -r '.also[]')" = nccl_log ]
	run "$FETTLE" probe --as nccl_log "$FIX/nccl-x2.log"
	[[ ${lines[-1]} == *': ok (nccl_log): '* ]]
}

@test "probe: several files, the worst status; --values shows each value" {
	run "$FETTLE" probe --values "$FIX/nanogpt.txt" "$FIX/llmc.txt"
	[ "$status" -eq 0 ]
	[[ $output == *'step 10     step_time_ms 1394.69 ms'* ]]
	[[ $output == *'step 2      step_time_ms 2391.52 ms'* ]]
	[ "$(grep -c ': ok (train_log): ' <<<"$output")" -eq 2 ]
	run "$FETTLE" probe "$FIX/nanogpt.txt" none.txt "$FIX/slurm-end.txt"
	[ "$status" -eq 4 ]
	[[ $output == *'ok (train_log)'*'none.txt: No such file'*'failed (slurm_end)'* ]]
	"$FETTLE" probe --json "$FIX/nanogpt.txt" "$FIX/nccl-tests-cut.txt" >two.json
	[ "$(jq -r 'select(.kind == "status") | .probe' two.json | paste -sd' ')" = 'train_log nccl_tests' ]
	[ "$(jq -r 'select(.kind == "ignored") | .why' two.json)" = 'a row that is cut' ]
}

@test "probe: --json is a JSON object a line, the status last" {
	"$FETTLE" probe --json "$FIX/smi-h200.csv" >smi.json
	jq -e . smi.json >/dev/null
	[ "$(tail -1 smi.json | jq -r '.kind, .status, .probe' | paste -sd' ')" = 'status ok nvidia_smi_csv' ]
	[ "$(jq -s 'map(select(.kind == "value" and .metric == "gpu_power_w" and .unit == "W")) | length > 0' \
		smi.json)" = true ]
	[ "$(jq -s '[.[] | select(.kind == "value")] | length' smi.json)" -eq \
		"$(tail -1 smi.json | jq '.values + .missing')" ]
}

@test "probe: a trace is a table, a row a step; ranks are compared" {
	run "$FETTLE" probe "$FIX/pytorch-trace.json"
	[ "$status" -eq 0 ]
	[ "$(grep -c 'exposed' <<<"$output")" -eq 1 ]
	grep -qE '^rank 1  step 7 +0\.100 +25\.0 +10\.0 +10\.0 +5\.0 +60\.0 +20\.0 +8\.0 +24\.0 +8\.0 +20\.0 ' <<<"$output"
	grep -qE '^rank 1  scope=steps +0\.200 +47\.5 ' <<<"$output"
	# rank 0 is early to the first all-reduce and waits 8 of its 200 us
	sed 's/"rank": 1/"rank": 0/; s/6401040.000, "dur": 20/6401032.000, "dur": 28/' "$FIX/pytorch-trace.json" | gzip >r0.json.gz
	run "$FETTLE" probe r0.json.gz "$FIX/pytorch-trace.json"
	[ "$status" -eq 0 ]
	[[ $output == *'rank 0   coll_wait_ratio 0.04'* ]]
	[[ ${lines[-1]} == *'trace.straggler = rank 1: the others wait 4.0 %'* ]]
	"$FETTLE" probe --json r0.json.gz "$FIX/pytorch-trace.json" >both.json
	jq -e . both.json >/dev/null
	[ "$(jq -r 'select(.metric == "coll_wait_ratio") | [.rank, .value] | join(" ")' both.json | paste -sd,)" = '0 0.04,1 0' ]
	run "$FETTLE" probe none.json "$FIX/nanogpt.txt"
	[ "$status" -eq 4 ]
	[[ $output == *'ok (train_log)'* ]]
}

@test "probe: what a trace does not say is told under its table" {
	printf '[{"ph":"X","cat":"kernel","name":"k","ts":0,"dur":5},{"ph":"X","cat":"kernel","name":"k","ts":15,"dur":5}]' >t.json
	run "$FETTLE" probe t.json
	[ "$status" -eq 0 ]
	[[ $output == *'launch: unknown: no host calls in the trace'* ]]
	grep -qE ' 50\.0 +- +- +- +- ' <<<"$output"
}

@test "probe: gzip, a cut file is partial and status 0" {
	gzip -c "$FIX/megatron-old.txt" >m.gz
	run "$FETTLE" probe m.gz
	[ "$status" -eq 0 ]
	run "$FETTLE" probe "$FIX/iostat-killed-truncated.json"
	[ "$status" -eq 0 ]
	[[ ${lines[-1]} == *': partial ('* ]]
}

@test "probe: --as and --pattern choose" {
	printf 'it 1 cost 2.5\nit 2 cost 2.25\n' >own.txt
	run "$FETTLE" probe own.txt
	[ "$status" -eq 4 ]
	[[ $output == *'no probe knows such a text'* ]]
	run "$FETTLE" probe -v -p 'it (?<step>\d+) cost (?<loss>\S+)' own.txt
	[ "$status" -eq 0 ]
	[[ $output == *'step 2 '*'loss 2.25'* ]]
	run "$FETTLE" probe -p 'it (?<step>\d+) cost (?<value>\S+)' -m val_loss own.txt
	[[ $output == *'val_loss '*' 2 '*' 2.375 '*' 2.25 '*' 2.5 '* ]]
	run "$FETTLE" probe --as nccl_tests own.txt
	[ "$status" -eq 4 ]
	[[ $output == *': absent (nccl_tests)'* ]]
	run "$FETTLE" probe --as nccl_test own.txt
	[ "$status" -eq 2 ]
	[[ $output == *'did you mean "nccl_tests"'* ]]
	run "$FETTLE" probe -p 'cost (?<loss' own.txt
	[ "$status" -ne 0 ]
}

@test "probe: a file that is not there, is empty, or is a directory" {
	run "$FETTLE" probe none.txt
	[ "$status" -eq 4 ]
	[[ $output == *none.txt* ]]
	: >empty.txt
	run "$FETTLE" probe empty.txt
	[ "$status" -eq 4 ]
	[[ $output == *'the file is empty'* ]]
	run "$FETTLE" probe .
	[ "$status" -eq 4 ]
}

@test "probe: a pipe is read whole, packed or not; - is the standard input" {
	# more than what is looked at to tell the kind
	for i in $(seq 3000); do echo "iter $i: loss 2.5, time 10.00ms, mfu 10.72%"; done >long.txt
	"$FETTLE" probe --json long.txt | sed 's/long.txt/X/g' >file.json
	"$FETTLE" probe --json - <long.txt | sed 's,/dev/stdin,X,g' | cmp - file.json
	# shellcheck disable=SC2002 # a pipe is what is meant
	cat long.txt | "$FETTLE" probe --json - | sed 's,/dev/stdin,X,g' | cmp - file.json
	gzip -c long.txt | "$FETTLE" probe --json /dev/stdin | sed 's,/dev/stdin,X,g' | cmp - file.json
	[ "$(tail -1 file.json | jq .lines)" = 3000 ]
	gzip -c long.txt | head -c 6 >cut.gz
	run "$FETTLE" probe cut.gz
	[ "$status" -eq 4 ]
	[[ $output == *'a gzip file that is cut'* ]]
}

@test "probe: escapes of a hostile log do not reach the terminal" {
	printf 'loss \033[31m1.5\033[0m|\033]0;x\007\n' >evil.txt
	"$FETTLE" probe -p 'loss (?<loss>.*)' evil.txt >out.txt 2>&1 || true
	[ "$(tr -d '\012\040-\176' <out.txt | wc -c)" -eq 0 ]
	"$FETTLE" probe --json -p '(?<loss>1.5).*' evil.txt | jq -e . >/dev/null
}

@test "probe --list names every format and every metric" {
	run "$FETTLE" probe --list
	for f in "$TOP"/probes/probe_*.c; do
		name=$(basename "$f" .c)
		[[ $output == *"${name#probe_} "* ]] || { echo "not listed: $name"; return 1; }
	done
	[ "$("$FETTLE" probe --list --json | jq '.formats | length')" -eq "$(find "$TOP/probes" -name 'probe_*.c' | wc -l)" ]
	[[ $output == *'  step_time_ms '*' ms '*' down '*'time of one training step'* ]]
	[ "$("$FETTLE" probe --list --json | jq '.metrics | length')" -eq "$(grep -c '^METRIC' "$TOP/experiments/metrics.def")" ]
}

# -- knobs -------------------------------------------------------------------------------------

@test "knobs: the list by domain, a part of it, JSON" {
	run "$FETTLE" knobs
	[ "$status" -eq 0 ]
	for knob in num_workers prefetch_factor pin_memory batch_size MALLOC_ARENA_MAX OMP_NUM_THREADS; do
		grep -q "^$knob " <<<"$output" || { echo "not listed: $knob"; return 1; }
	done
	for domain in nccl nccl_net sharp cuda_allocator dataloader fsdp zero megatron precision placement efa; do
		grep -qx -e "-- $domain" <<<"$output" || { echo "no domain $domain"; return 1; }
	done
	run "$FETTLE" knobs dataloader
	[ "${lines[0]}" = '-- dataloader' ]
	[[ ${lines[1]} == num_workers*neutral*storage*effective* ]]
	[[ $output != *NCCL_* ]]
	[ "$("$FETTLE" knobs 'NCCL_*CTAS' | grep -c '^NCCL_')" -eq 3 ]
	[ "$("$FETTLE" knobs buffsize | grep -c '^NCCL_')" -eq 3 ]
	"$FETTLE" knobs --json >k.json
	[ "$(jq 'map(select(.name == "batch_size")) | .[0].class' k.json)" = '"optimisation"' ]
	[ "$(jq 'map(select(.summary == null or .proof == null or (.passed_as == null and .passed == {}))) | length' k.json)" -eq 0 ]
	[ "$("$FETTLE" knobs dataloader --json | jq -r '.[0].values | join(" ")')" = '1 2 4 8' ]
}

@test "knobs explain: all about one, by its name, its variable, or what a framework calls it" {
	run "$FETTLE" knobs explain num_workers
	[ "$status" -eq 0 ]
	[[ $output == *'passed as  argument, --num-workers'* ]]
	[[ $output == *'hf_trainer  --dataloader_num_workers'* ]]
	[[ $output == *'proof      effective'* ]]
	[[ $output == *'mistakes   it counts per rank'* ]]
	[[ $output == *'in this workspace: never proposed'* ]]
	run "$FETTLE" knobs explain NCCL_IB_TIMEOUT
	[[ $output == *'default    14 from nccl 2.3.5, 18 from nccl 2.14.3, 20 from nccl 2.23.4'* ]]
	run "$FETTLE" knobs explain NCCL_SHM_USE_CUDA_MEMCPY
	[[ $output == *'exists     from nccl 2.13.4, gone with nccl 2.30.7'* ]]
	run "$FETTLE" knobs explain dataloader_num_workers
	[ "${lines[0]}" = num_workers ]
	[ "$("$FETTLE" knobs explain LD_PRELOAD --json | jq -r 'map(.name) | join(" ")')" = 'jemalloc tcmalloc' ]
	[ "$("$FETTLE" knobs explain NCCL_BUFFSIZE --json | jq -r .documented)" = debug ]
}

@test "knobs new: a file that loads as it stands" {
	mkdir -p more/knobs
	"$FETTLE" knobs new my_knob >more/knobs/my_knob.lua
	env FETTLE_RECIPE_PATH="$PWD/more" "$FETTLE" knobs explain my_knob | grep -q 'environment, MY_VARIABLE'
	printf 'return { name = "c", objective = "trial_wall_s", knobs = { "my_knob" },\n' >c.lua
	printf 'workload = { command = { "true" } } }\n' >>c.lua
	env FETTLE_RECIPE_PATH="$PWD/more" "$FETTLE" check c.lua
	run "$FETTLE" knobs new 'a b'
	[ "$status" -eq 2 ]
}

@test "knobs: an unknown one, wrong words, and a workspace that is not there" {
	for words in num_wrokers 'explain num_worker'; do
		# shellcheck disable=SC2086
		run "$FETTLE" knobs $words
		[ "$status" -eq 4 ] || { echo "$words: $output"; return 1; }
	done
	[[ $output == *'did you mean "num_workers"'* ]]
	for words in explain new 'num_workers pin_memory' 'explain a b'; do
		# shellcheck disable=SC2086
		run "$FETTLE" knobs $words
		[ "$status" -eq 2 ] || { echo "$words: $output"; return 1; }
	done
	run "$FETTLE" knobs -w none num_workers
	[ "$status" -eq 4 ]
}

@test "status: the recipe of many campaigns with a fix is read once" {
	printf '{"fixed": true, "sd_run": 0.005, "effects": {"A=1": 0.06}}' >truth.json
	cc -D_GNU_SOURCE -shared -fPIC -o fork.so "$TOP/tests/faults/failnth.c" -ldl
	# a recipe is read in a child of its own
	children() {
		rm -f told
		FAIL_NTH=1000000 FAIL_CALLS=fork FAIL_WITH=EIO FAIL_TOLD=$PWD/told LD_PRELOAD=$PWD/fork.so "$FETTLE" status -w fixes >shown
		tail -n 1 told
	}
	for n in 1 2 3; do
		"$FETTLE" run -q -s fake --fake truth.json -w fixes "$TOP/tests/fixtures/recipes/fake-brief.lua" >run.txt
		[ "$(sqlite3 fixes/fettle.db 'SELECT count(*) FROM fix WHERE fingerprint IS NOT NULL')" -eq "$n" ]
		[ "$n" -ne 1 ] || one=$(children)
	done
	[ "$one" != 'seen 0' ]
	[ "$(children)" = "$one" ]
	[ "$(grep -c fake-brief shown)" -eq 3 ]
}

# -- a machine without a cluster -----------------------------------------------------------------

# away SAYS ARGUMENT...: status 4, one message with what libslurm said and what to do, and no campaign
away() {
	run "$FETTLE" run -w away "${@:2}" none.lua
	echo "$output"
	[ "$status" -eq 4 ]
	[[ $output == *": Slurm cannot be used on this machine: "*"$1"*" (run fettle where \`sinfo\` answers, as on a login node of the cluster, let SLURM_CONF name the cluster's slurm.conf, or use scheduler local)" ]]
	[ ! -e away/fettle.db ] || [ "$(sqlite3 away/fettle.db 'SELECT count(*) FROM campaign')" = 0 ]
}

@test "run where there is no Slurm: one status, one message, however libslurm gives up" {
	echo 'return { name = "c", objective = "trial_wall_s", workload = { command = { "true" } } }' >none.lua
	mkdir bin
	stand_in() { printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod +x "$1"; }
	# it answers the request that it was busy with, and ends
	stand_in bin/answers "read -r l; echo '{\"id\":1,\"ok\":false,\"code\":\"notfound\",\"text\":\"libslurm ended fettle-slurm with status 1\",\"stderr\":\"fatal: no source\"}'; exit 1"
	# it ends without a word on the pipe
	stand_in bin/ends 'echo "fatal: no source" >&2; exit 1'
	for helper in answers ends; do
		FETTLE_SLURM_HELPER=$PWD/bin/$helper away 'fatal: no source' -s slurm
	done
	SLURM_CONF=/nonexistent away 'SLURM_CONF=/nonexistent: No such file or directory' -s slurm
	for command in sbatch squeue scancel sinfo scontrol; do
		stand_in "bin/$command" 'echo "fatal: Could not establish a configuration source" >&2; exit 1'
	done
	PATH=$PWD/bin:$PATH away 'Could not establish a configuration source' -s slurm_cli
	SLURM_CONF=/nonexistent away 'SLURM_CONF=/nonexistent: No such file or directory' -s slurm_cli
}

# -- doctor ------------------------------------------------------------------------------------

@test "doctor: all parts are named, status 0" {
	run "$FETTLE" doctor
	[ "$status" -eq 0 ]
	for name in recipes agent 'agent subreaper' 'scheduler local' 'scheduler slurm' 'scheduler slurm_cli' cpu memory gpu \
		workspace libjemalloc python3 iostat nsys; do
		grep -qE "^(ok|missing) +$name" <<<"$output" || { echo "not named: $name"; return 1; }
	done
	[ ! -e fettle-workspace ]
	[ "$("$FETTLE" doctor --json | jq -r 'map(.state) | unique | map(select(. == "bad")) | length')" -eq 0 ]
}

@test "doctor: without its agent fettle cannot work: status 4" {
	run env FETTLE_AGENT=/nowhere/fettle-agent "$FETTLE" doctor
	[ "$status" -eq 4 ]
	[[ $output == *'bad      agent '*'/nowhere/fettle-agent does not exist'* ]]
	run env FETTLE_AGENT=/bin/false "$FETTLE" doctor --json
	[ "$status" -eq 4 ]
	[ "$(jq -r '.[] | select(.state == "bad") | .name' <<<"$output")" = agent ]
}

@test "doctor: without fettle-slurm it says what to install, and what does until then" {
	run env FETTLE_SLURM_HELPER=/nowhere/fettle-slurm "$FETTLE" doctor
	[ "$status" -eq 0 ]
	[[ $output == *'missing  fettle-slurm '*'/nowhere/fettle-slurm does not exist; install libslurm-dev (Debian) or slurm-devel (RHEL) and run `make`; until then scheduler slurm_cli does with Slurm'* ]]
}

@test "doctor: a SLURM_CONF that is not there is said at once" {
	run env SLURM_CONF=/nowhere/slurm.conf "$FETTLE" doctor
	[ "$status" -eq 0 ]
	[[ $output == *'SLURM_CONF names /nowhere/slurm.conf, which does not exist'* ]]
}

@test "doctor: a broken recipe is found" {
	mkdir -p r/knobs
	echo 'return { { name = 7 } }' >r/knobs/broken.lua
	run env FETTLE_RECIPE_PATH="$PWD/r" "$FETTLE" doctor
	[ "$status" -eq 4 ]
	[[ $output == *'bad      recipes '*'broken.lua'* ]]
}

# -- help, man page, completion ----------------------------------------------------------------

@test "the help of each command names each of its options" {
	[ "$(commands | wc -l)" -ge 12 ]
	for name in $(commands); do
		help=$("$FETTLE" "$name" --help)
		for option in $(options_of "$name"); do
			[[ $help == *"--$option"* ]] || { echo "$name: --$option"; return 1; }
		done
	done
	[[ $(options_of probe) == *pattern*list* ]]
}

@test "the man page names every command and every option" {
	man=$(mandoc -T ascii "$TOP/orchestrator/fettle.1" | sed 's/.\x08//g')
	for name in $(commands); do
		grep -qE "^ +$name( |\$)" <<<"$man" || { echo "not in the man page: $name"; return 1; }
		for option in $(options_of "$name"); do
			[[ $man == *"--$option"* ]] || { echo "not in the man page: $name --$option"; return 1; }
		done
	done
}

# What bash would offer for the words given; the last one is being typed.
complete_words() {
	PATH=$(dirname "$FETTLE"):$PATH bash -c '
		source "$1/orchestrator/fettle.bash"
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_fettle
		printf "%s\n" "${COMPREPLY[@]}"' bash "$TOP" "$@"
}

@test "completion offers commands, options, forms, probes, knobs and files" {
	[ "$(complete_words fettle rec)" = recommend ]
	[ "$(complete_words fettle help kno)" = knobs ]
	[ "$(complete_words fettle -v kno)" = knobs ]
	[ "$(complete_words fettle report --fo)" = --format ]
	[ "$(complete_words fettle report -f '' | paste -sd' ')" = 'csv html json markdown' ]
	[ "$(complete_words fettle recommend --as s)" = sbatch ]
	[ "$(complete_words fettle recommend --as = s)" = sbatch ] # as bash takes --as=s apart
	[ "$("$FETTLE" complete -- recommend --as=s | cut -f1)" = --as=sbatch ] # as zsh and fish do not
	[ "$(complete_words fettle regressions --as ju)" = junit ]
	[ "$(complete_words fettle check --transport r)" = roce ]
	[ "$(complete_words fettle probe -a mega)" = megatron ]
	[ "$(complete_words fettle probe -vm step_t)" = step_time_ms ]
	[ "$(complete_words fettle knobs num_)" = num_workers ]
	[ "$(complete_words fettle knobs explain num_)" = num_workers ]
	[ "$(complete_words fettle run -s slurm_)" = slurm_cli ]
	[ "$(complete_words fettle report --lang z)" = zh_CN ]
	[ "$(complete_words fettle history im)" = import ]
	[ "$(complete_words fettle history import --dry)" = --dry-run ]
	[ "$(complete_words fettle history watch --na)" = --name ]
	[ "$(complete_words fettle regressions ac | paste -sd' ')" = 'ack accept' ]
	[ -z "$(complete_words fettle compl)" ]
	[ -z "$(complete_words fettle nonsense '')" ]
	mkdir nights
	touch a.lua b.csv
	[ "$(complete_words fettle run '' | paste -sd' ')" = 'nights a.lua' ]
	[ "$(complete_words fettle nightly '' | paste -sd' ')" = nights ]
	[ "$(complete_words fettle history import b)" = b.csv ]
	[ "$(complete_words fettle ab -- a)" = a.lua ]
	[ ! -e fettle-workspace ]
}

@test "completion knows each option of each command, and runs none" {
	for name in $(commands); do
		offered=$("$FETTLE" complete -- "$name" -)
		for option in help $(options_of "$name"); do
			grep -qE -- "^--$option(	|\$)" <<<"$offered" || { echo "$name: --$option not in: $offered"; return 1; }
		done
	done
	[ -z "$("$FETTLE" complete -- doctor '')" ]
	[ -z "$("$FETTLE" complete -- status '')" ]
}

@test "completion asks the workspace for campaigns, series and regressions" {
	printf 'time,tokens_per_s,workload\n' >runs.csv
	for n in $(seq 10 29); do printf '2026-10-%dT22:00:00Z,%d,gpt\n' "$n" $((n < 20 ? 1000 + n : 800 + n)); done >>runs.csv
	"$FETTLE" history import runs.csv >/dev/null
	sqlite3 fettle-workspace/fettle.db "INSERT INTO campaign(name, recipe_path, recipe_hash, scheduler, state, mode, seed,
		alpha, confirm_max, env_json, created_us) VALUES ('loader', 'l.lua', 'x', 'local', 'done', 'quick', 1, 0.05, 1, '{}', 1)"
	[ "$("$FETTLE" complete -- history 1)" = "$(printf '1\ttokens_per_s of gpt')" ]
	"$FETTLE" complete -- regressions ack '' >offered
	cat offered
	grep -q "^1$(printf '\t')" offered
	[ "$("$FETTLE" complete -- report 'lo')" = "$(printf 'loader\tthe newest of this name')" ]
	mv fettle-workspace other
	for word in -w --workspace; do [ "$("$FETTLE" complete -- report "$word" other l | cut -f1)" = loader ]; done
	[ "$("$FETTLE" complete -- report --workspace=other l | cut -f1)" = loader ]
	[ -z "$("$FETTLE" complete -- report l)" ]
}
