#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle diagnose: recorded captures of planted slow-downs, calibrated traces, bad input, and the trial
# under a profiler of a real campaign. What is planted anew needs LONG=1: it is slow, not uncertain.
bats_require_minimum_version 1.5.0

setup() {
	FETTLE=${FETTLE:?set it to the fettle that is tested}
	BUILD=${FETTLE_BUILD:-$BATS_TEST_DIRNAME/../../build/release}
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	CAPTURES=$TOP/tests/fixtures/diagnose
	SAMPLES=${FETTLE_SAMPLES:-$TOP/../shared/samples}
	cd "$BATS_TEST_TMPDIR" || return 1
	unset FETTLE_RECIPE_PATH FETTLE_SITE FETTLE_WORKSPACE PYTHONPATH FETTLE_PROFILE_DIR
	export OMP_NUM_THREADS=1
}

first() {
	jq -r '.findings[0] | "\(.bottleneck)\t\(.rule)"'
}

@test "each planted slow-down of the recorded captures is named first, with its figure" {
	while IFS=$'\t' read -r dir bottleneck rule lo hi; do
		"$FETTLE" diagnose --json "$CAPTURES/$dir" >answer.json
		echo "$dir: $(jq -c '[.findings[] | [.bottleneck, .rule, .share]]' answer.json)"
		[ "$(first <answer.json)" = "$bottleneck"$'\t'"$rule" ]
		jq -e --argjson lo "$lo" --argjson hi "$hi" '.findings[0] | .share > $lo and .share < $hi and
			((.ceiling - .share / (1 - .share)) | fabs) < 1e-9' answer.json
	done <"$CAPTURES/expected.tsv"
}

@test "the calibrated traces: input-bound about 40 %, communication exposed about 27 %" {
	[ -d "$SAMPLES/kineto" ] || return 0
	"$FETTLE" diagnose --json "$SAMPLES/kineto/resnet50-2021-num_workers_0.json.gz" >a.json
	jq -e '.findings[0] | .bottleneck == "storage" and .share > 0.39 and .share < 0.41 and (.try | index("num_workers"))' a.json
	"$FETTLE" diagnose --json "$SAMPLES/kineto/dlrm-rank0-nccl-sampled.json.gz" >b.json
	jq -e '.findings[0] | .bottleneck == "communication" and .share > 0.27 and .share < 0.28' b.json
}

@test "a page: order, evidence, ceiling, advice, what stays open and what would close it" {
	run -0 "$FETTLE" diagnose "$CAPTURES/plain-slow"
	echo "$output"
	[[ $output == *"1. storage: 58.4 % of the step; without it at most +140.5 %"* ]]
	[[ $output == *"because: loading, done by the training process itself (no workers), waits 57.5 % of its time for files"* ]]
	[[ $output == *"try: num_workers, "*"(fettle knobs explain num_workers)"* ]]
	[[ $output == *"open: is it a local disk, or a file system over the network? Not measured: disk_util_pct"* ]]
	[[ $output == *"run: iostat -xty 1"* ]]
	[ "$(wc -l <<<"$output")" -le 60 ]
	# iostat's words close that branch
	mkdir heap
	cp "$CAPTURES"/plain-slow/rank0.json.gz "$TOP/tests/fixtures/probes/iostat-x.txt" heap/
	run -0 "$FETTLE" diagnose heap
	[[ $output != *"is it a local disk"* ]]
	[[ $output == *"2 of 2 files gave figures"* ]]
}

@test "logs alone will do, without a trace or a campaign" {
	mkdir logs
	for i in $(seq 40); do
		echo "{\"step\": $i, \"loss\": 2.0, \"step_time_ms\": 100.0, \"data_wait_ms\": 60.0}"
	done >logs/train.jsonl
	echo "something else" >logs/notes.txt
	"$FETTLE" diagnose --json logs >a.json
	[ "$(first <a.json)" = "storage"$'\t'"data_wait" ]
	jq -e '.findings[0].share == 0.6 and .signals.step_time_ms == 100 and (.files | length) == 2 and
		([.open[].rule] | index("exposed_communication"))' a.json
	# another threshold, and a signal by hand
	"$FETTLE" diagnose --json -t data_wait=0.7 logs | jq -e '[.findings[].rule] | index("data_wait") == null'
	"$FETTLE" diagnose --json -s comm_exposed_ratio=0.65 logs | jq -e '.findings[0].rule == "exposed_communication"'
}

@test "bad input is named, with the exit status of its kind" {
	run -2 "$FETTLE" diagnose
	run -2 "$FETTLE" diagnose -t data_wait "$CAPTURES/plain-slow"
	run -2 "$FETTLE" diagnose -t data_wiat=1 "$CAPTURES/plain-slow"
	[[ $output == *'no rule with a limit is called "data_wiat" (did you mean "data_wait"?)'* ]]
	run -4 "$FETTLE" diagnose nowhere
	mkdir empty && echo hello >empty/x
	run -4 "$FETTLE" diagnose empty
	[[ $output == *"none of these files holds a figure"* ]]
}

@test "a rule that reads an unknown signal, fails or loops: named, exit 2, nothing run" {
	mkdir -p site/rules
	cat >c.lua <<-'END'
		return { name = "c", objective = "trial_wall_s", workload = { command = { "touch", "ran" } } }
	END
	bad() {
		echo "$1" >site/rules/mine.lua
		FETTLE_RECIPE_PATH=$PWD/site run -2 "$FETTLE" run c.lua -w ws
		echo "$output"
		[[ $output == *"$PWD/site/rules/mine.lua:1: $2"* ]]
		[ ! -e ran ] && [ ! -e ws ]
		FETTLE_RECIPE_PATH=$PWD/site run -2 "$FETTLE" diagnose "$CAPTURES/plain-slow"
		[[ $output == *"mine.lua:1: $2"* ]]
	}
	bad 'return { { name = "a", when = function(s) return over(s.data_wiat_ratio, 1) end } }' 'no signal is called "data_wiat_ratio" (did you mean "data_wait_ratio"?)'
	bad 'return { { name = "a", when = function(s) return over(s.data_wait_ratio, 0.9) and s.loss.x end } }' "attempt to index a number value (field 'loss')"
	bad 'return { { name = "a", when = function() while true do end end } }' 'evaluating it took more than'
	bad 'return { { name = "a", needs = { "nothing_known" }, when = function() end } }' 'rule a: needs: no signal is called "nothing_known"'
}

# Pictures of this size, for tests/workloads/plain/train.py.
pictures() {
	mkdir data
	/usr/bin/python3 - "$1" "$2" <<-'END'
		import sys
		import numpy as np
		n, side = map(int, sys.argv[1:])
		r = np.random.default_rng(0)
		for i in range(n):
		    np.save('data/%04d.npy' % i, r.integers(0, 256, (3, side, side), dtype=np.uint8))
	END
	cp "$TOP/tests/workloads/plain/train.py" .
}

@test "python train.py, not edited, leaves a trace of some steps, whose input is what it waits for" {
	pictures 128 48
	hook="$TOP/recipes/profile"
	# the site's own sitecustomize, which it hides, runs all the same
	mkdir site && echo 'print("of the site")' >site/sitecustomize.py
	[ "$(PYTHONPATH=$hook:$PWD/site FETTLE_PROFILE_DIR=trace /usr/bin/python3 -c 'print("program")')" = "of the site"$'\n'program ]
	env PYTHONPATH="$hook" FETTLE_PROFILE_DIR=trace LD_PRELOAD="$BUILD/tests/workloads/slow_read" SLOW_READ_DIR="$PWD/data" \
		SLOW_READ_US=4000 /usr/bin/python3 train.py >with
	[ "$(grep -c '^epoch' with)" -eq 2 ]
	run -0 "$FETTLE" diagnose --json trace
	jq -e '.signals.profile_steps == 6 and .signals.data_wait_ratio > 0.3 and .signals.loader_workers == 0 and
		([.findings[].rule] | index("data_wait"))' <<<"$output"
}

@test "batches before training are no steps: the recording begins anew, in the trace are steps of the optimizer" {
	cat >cached.py <<-'END'
		import sys
		import torch
		from torch.utils.data import DataLoader, TensorDataset

		source = iter(DataLoader(TensorDataset(torch.randn(640, 8)), batch_size=8))
		model = torch.nn.Linear(8, 8)
		if sys.argv[1] == "early":
		    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
		cached = [next(source)[0] for _ in range(40)]
		if sys.argv[1] == "late":
		    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
		for step in range(30):
		    loss = model(cached[step]).square().mean()
		    loss.backward()
		    if sys.argv[1] == "none":
		        continue
		    optimizer.step()
		    optimizer.zero_grad()
	END
	for made in early late; do
		env PYTHONPATH="$TOP/recipes/profile" FETTLE_PROFILE_DIR=$made /usr/bin/python3 cached.py $made
		gzip -dc $made/rank0.json.gz | jq -e '.fettle.profile_steps == 6 and
			([.traceEvents[].name] | (index("aten::addmm") or index("aten::linear")) and
			(map(select(contains("DataLoader"))) | length) == 0)'
	done
	# without an optimizer batches are all there is
	env PYTHONPATH="$TOP/recipes/profile" FETTLE_PROFILE_DIR=none /usr/bin/python3 cached.py none
	gzip -dc none/rank0.json.gz | jq -e '[.traceEvents[].name | select(contains("DataLoader"))] | length >= 6'
}

@test "the hook adds to a trace however its JSON begins" {
	for begins in '{"a": 1, ' $' \n  {\n "a": 1, ' '[' $'  ['; do
		rm -rf out
		BEGINS="$begins" /usr/bin/python3 - "$TOP/recipes/profile/sitecustomize.py" <<-'END'
			import importlib.util, os, sys
			spec = importlib.util.spec_from_file_location("hook", sys.argv[1])
			hook = importlib.util.module_from_spec(spec)
			spec.loader.exec_module(hook)

			class Profiler:
			    def export_chrome_trace(self, path):
			        text = os.environ["BEGINS"]
			        with open(path, "w") as f:
			            f.write(text + ("]" if text.strip() == "[" else '"traceEvents": []}'))

			r = hook.Recorder.__new__(hook.Recorder)
			r.dir, r.pid, r.prof = "out", os.getpid(), Profiler()
			r.write({"profile_steps": 6})
		END
		gzip -dc out/rank0.json.gz | jq -e '.fettle.profile_steps == 6 and .traceEvents == []'
	done
}

# The stage itself, with a program that never imports torch: cheap, and the branches stay open.
@test "a campaign has one untimed trial under a profiler; profile = false has none" {
	cat >train.py <<-'END'
		import os
		print("step 1 profiled" if os.environ.get("FETTLE_PROFILE_STEPS") else "step 1 plain", flush=True)
		if os.environ.get("FETTLE_PROFILE_STEPS"):
		    os.makedirs(os.environ["FETTLE_TRIAL_DIR"] + "/profile", exist_ok=True)
		    open(os.environ["FETTLE_TRIAL_DIR"] + "/profile/rank0.json", "w").write(
		        '{"fettle": {"profile_steps": 6}, {"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a"}]}')
	END
	cat >c.lua <<-'END'
		return {
			name = "plain", workload = { command = { "/usr/bin/python3", "train.py" } },
			objective = "trial_wall_s", blocks = { aa = 2, final = 0 }, warmup_trials = 0, mode = "quick",
			thresholds = { data_wait = 0.2 },
		}
	END
	"$FETTLE" plan --json c.lua | jq -e '.runs_profile_max >= 1'
	run -0 "$FETTLE" run c.lua -w ws
	echo "$output"
	[[ $output == *"profile: one untimed trial of the baseline under a profiler"* ]]
	[[ $output == *"no trace: "* ]]
	q() { sqlite3 ws/fettle.db "$1"; }
	[ "$(q "SELECT group_concat(kind) FROM (SELECT kind FROM stage ORDER BY seq)")" = aa,profile ]
	[ "$(q "SELECT count(*) FROM v_trial WHERE counted")" -eq 4 ]
	[[ $(q "SELECT reason FROM v_trial WHERE stage_kind = 'profile'") == "no trace: rank0.json: not JSON"* ]]
	[ "$(q "SELECT count(*) FROM v_trial WHERE stage_kind = 'profile' AND NOT counted")" -eq 1 ]
	[ "$(q "SELECT count(*) FROM finding WHERE bottleneck = 'unknown' AND evidence LIKE 'open: %'")" -gt 3 ]
	[ "$(cat ws/blocks/*/t*/out | sort | uniq -c | tr -s ' ' | tr '\n' ,)" = " 4 step 1 plain, 1 step 1 profiled," ]
	sed -i 's/mode = "quick",/mode = "quick", profile = false,/' c.lua
	"$FETTLE" plan --json c.lua | jq -e '.runs_profile_max == 0'
	run -0 "$FETTLE" run c.lua -w without
	[ "$(sqlite3 without/fettle.db "SELECT count(*) FROM stage WHERE kind = 'profile'")" -eq 0 ]
}

@test "a trace whose steps are shorter than the program's is of other steps: it gives no signal" {
	cat >train.py <<-'END'
		import json
		import os
		PROFILED = "FETTLE_PROFILE_STEPS" in os.environ
		if PROFILED:
		    events = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d" % i, "pid": 1, "tid": 1,
		               "ts": 1e6 + i * SHOWN, "dur": SHOWN} for i in range(6)]
		    events += [dict(e, cat="cpu_op", name="aten::addmm", ts=e["ts"] + 10, dur=100) for e in events]
		    os.makedirs(os.environ["FETTLE_TRIAL_DIR"] + "/profile", exist_ok=True)
		    with open(os.environ["FETTLE_TRIAL_DIR"] + "/profile/rank0.json", "w") as out:
		        json.dump({"fettle": {"profile_steps": 6}, "schemaVersion": 1, "traceEvents": events}, out)
		with open(os.environ["FETTLE_METRICS"], "a") as out:
		    for step in range(1, 21):
		        out.write(json.dumps({"step": step, "step_time_ms": 400.0 if PROFILED and step == 9 else 50.0}) + "\n")
	END
	cat >c.lua <<-'END'
		return {
			name = "other", objective = "step_time_ms", blocks = { aa = 2, final = 0 }, warmup_trials = 0, mode = "quick",
			workload = { command = { "/usr/bin/python3", path("train.py") }, window = { warmup_steps = 2, steps = 10 },
				metrics = { file = true } },
		}
	END
	shown() {
		sed "s/SHOWN/$1/g" train.py >"$1.py" && sed "s/train.py/$1.py/" c.lua >"$1.lua"
		run -0 "$FETTLE" run "$1.lua" -w "ws$1"
		echo "$output"
	}
	traced() {
		sqlite3 "ws$1/fettle.db" "SELECT count(*) > 0 FROM v_metric WHERE stage_kind = 'profile' AND metric LIKE 'trace_%'"
	}
	shown 55000
	[[ $output == *"a step took 55 ms under the profiler, 50 ms without (+10.0 %)"* ]]
	[ "$(traced 55000)" -eq 1 ]
	shown 30000
	[ "$(traced 30000)" -eq 0 ]
	[[ $(sqlite3 ws30000/fettle.db "SELECT reason FROM v_trial WHERE stage_kind = 'profile'") == *"the steps in it take 30 ms, those of the program 50 ms"* ]]
}

@test "LONG: a campaign of python train.py is diagnosed from its own trace" {
	[ -n "${LONG:-}" ] || return 0
	pictures 128 48
	cat >c.lua <<-'END'
		return {
			name = "plain", workload = { command = { "/usr/bin/python3", "train.py" } },
			objective = "trial_wall_s", blocks = { aa = 2, final = 0 }, warmup_trials = 0, mode = "quick",
		}
	END
	run -0 "$FETTLE" run c.lua -w ws
	echo "$output"
	[[ $output == *"ms under the profiler"* ]]
	[ "$(sqlite3 ws/fettle.db "SELECT count(*) FROM v_metric WHERE stage_kind = 'profile' AND stat = 'mean' AND
		metric IN ('compute_ratio', 'data_wait_ratio', 'rank_ready_ratio')")" -eq 3 ]
	[ -s "$(echo ws/blocks/*/t00/profile/rank0.json.gz)" ]
	run ! grep -rlq FETTLE_PROFILE ws/blocks/1.1
}

@test "LONG: slow disk, straggler and churning allocator, planted now, are found" {
	[ -n "${LONG:-}" ] || return 0
	demo=$TOP/recipes/workloads/demo
	/usr/bin/python3 "$demo/make_dataset.py" --out shards --samples 320 --shards 2
	profiled() {
		local dir=$1
		shift
		env PYTHONPATH="$TOP/recipes/profile" FETTLE_PROFILE_DIR="$dir" "$@" >/dev/null
		"$FETTLE" diagnose --json "$dir" >"$dir.json"
		jq -c '[.findings[] | [.bottleneck, .rule, .share]]' "$dir.json"
	}
	profiled disk LD_PRELOAD="$BUILD/tests/workloads/slow_read" SLOW_READ_DIR="$PWD/shards" SLOW_READ_US=30000 \
		/usr/bin/python3 "$demo/train.py" --data shards --steps 20
	jq -e '.findings[0] | .bottleneck == "storage" and .rule == "data_wait" and .share > 0.4' disk.json
	profiled rank /usr/bin/python3 "$TOP/tests/workloads/ranks.py" 2 "$BUILD/tests/workloads/limit" -r 1 15 \
		/usr/bin/python3 "$TOP/tests/workloads/plain/ddp.py"
	jq -e '[.findings[] | select(.rule == "straggler")] | .[0].share > 0.3 and (.[0].evidence | startswith("rank 1 "))' rank.json
	# how much of a churning allocator's time is waited for on a busy machine is not for a test to bound
	profiled churn MALLOC_TRIM_THRESHOLD_=0 MALLOC_MMAP_THRESHOLD_=4096 MALLOC_TOP_PAD_=0 \
		/usr/bin/python3 "$demo/train.py" --data shards --steps 20 --num-workers 1
	jq -e '[.findings[].rule] | index("host_allocator")' churn.json
}
