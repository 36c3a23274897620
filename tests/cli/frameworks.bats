#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A knob that is a key of a framework's JSON file: a copy of the file for each arm, proved by what the
# ranks were given, and written out as the fix. The workload reads the file as DeepSpeed does.

bats_require_minimum_version 1.5.0

setup() {
	FETTLE=${FETTLE:-$BATS_TEST_DIRNAME/../../build/release/fettle}
	unset FETTLE_SITE FETTLE_RECIPE_PATH FETTLE_WORKSPACE
	cd "$BATS_TEST_TMPDIR" || return
	cat >train.py <<-'END'
		import json, os, sys, time
		config = json.load(open(sys.argv[1]))
		time.sleep(0.2)
		fast = config["zero_optimization"]["overlap_comm"] is True and config["bf16"]["enabled"]
		print("speed", (130 if fast else 100) + os.getpid() % 7 / 100, flush=True)
	END
	echo '{"bf16": {"enabled": true}, "zero_optimization": {"stage": 2, "overlap_comm": false, "reduce_bucket_size": 5e8}}' >ds.json
}

# campaign KNOBS [FIELDS of the workload]
campaign() {
	cat >c.lua <<-END
		return { name = "zero", objective = { metric = "speed", better = "up" },
			workload = { command = { "/usr/bin/python3", "train.py", "ds.json" },
				framework = "deepspeed", ${2-config = \"ds.json\",} metrics = { pattern = "speed (?<value>\\\\S+)" } },
			knobs = { $1 }, mode = "quick", rounds = 1, warmup_trials = 0, seed = 1,
			blocks = { aa = 0, final = 2, soak = 0 } }
	END
}

@test "a key of DeepSpeed's file is varied in copies, proved and recommended" {
	cp ds.json before.json
	campaign '"zero_overlap_comm"'
	run "$FETTLE" run c.lua -q
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *'zero_overlap_comm'*'accepted'* ]]
	cmp ds.json before.json
	# the default is what the file says
	[ "$("$FETTLE" knobs explain zero_overlap_comm --json | jq -r '.tried[0] | .from + " " + .to + " " + .outcome')" = 'false true accepted' ]
	"$FETTLE" recommend --as config >fix.json
	[ "$(jq -c . fix.json)" = '{"bf16":{"enabled":true},"zero_optimization":{"stage":2,"overlap_comm":true,"reduce_bucket_size":500000000}}' ]
	"$FETTLE" recommend | grep -q '^#   zero_optimization.overlap_comm = true'
	"$FETTLE" recommend --as sbatch | grep -q '^exec /usr/bin/python3 train.py ds.fettle.json$'
	# the plan is the stored one, whatever becomes of the file
	rm ds.json
	"$FETTLE" report >/dev/null
}

@test "what cannot be passed in a file is refused before anything runs" {
	campaign '"zero_overlap_comm"' ''
	run "$FETTLE" run c.lua
	[ "$status" -eq 2 ]
	[[ $output == *'in its JSON file, as zero_optimization.overlap_comm: say which one the command names'* ]]
	campaign '"zero_overlap_comm"' 'config = "other.json",'
	run "$FETTLE" run c.lua
	[ "$status" -eq 2 ]
	[[ $output == *'c.lua:3: workload.config: the command does not name other.json'* ]]
	campaign '"zero_overlap_comm"'
	echo '{"a": ' >ds.json
	run "$FETTLE" run c.lua
	[ "$status" -eq 2 ]
	[[ $output == *'c.lua:3: workload.config: is no JSON'* ]]
	rm ds.json
	run "$FETTLE" run c.lua
	[ "$status" -eq 2 ]
	[[ $output == *'c.lua:3: workload.config: '*'ds.json'* ]]
	[ ! -e fettle-workspace/fettle.db ] || [ "$(sqlite3 fettle-workspace/fettle.db 'SELECT count(*) FROM campaign')" -eq 0 ]
}
