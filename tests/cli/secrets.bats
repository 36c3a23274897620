#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A secret reaches the workload by its name, and nothing that fettle writes or prints has its value: what the workload
# prints is in its own log, as it printed it, and nowhere else.
bats_require_minimum_version 1.5.0

setup() {
	FETTLE=${FETTLE:-$BATS_TEST_DIRNAME/../../build/release/fettle}
	export PATH=${FETTLE_BUILD:-$PWD/build/release}/tests/workloads:$PATH
	cd "$BATS_TEST_TMPDIR" || exit 1
}

# campaign WORKLOAD_FIELD
campaign() {
	cat <<-END
		return {
			name = "secrets",
			workload = {
				command = { "sh", "-c", [[
					case \$HF_TOKEN:\$DB_PASSWORD in *-named:*-named) ;; *) exit 9 ;; esac
					case "\$*" in *--slow*) echo "RuntimeError: no access with \$HF_TOKEN" >&2; exit 1 ;; esac
					echo "login with \$HF_TOKEN"
					exec planted --fixed --sleep-ms 4 "\$@" ]], "x" },
				secrets = { "HF_TOKEN", "DB_PASSWORD" },
				window = { warmup_steps = 3, steps = 20 },
				metrics = { file = true },
				limits = { trial_s = 10 },
				$1
			},
			objective = { metric = "throughput_samples_per_s", stat = "median" },
			knobs = {
				{ name = "fast", arg = "--fast", flag = true, class = "neutral", default = false, values = { true } },
				{ name = "slow", arg = "--slow", flag = true, class = "neutral", default = false, values = { true } },
			},
			mode = "quick",
			rounds = 1,
			blocks = { aa = 2, final = 2, soak = 1 },
			seed = 1,
		}
	END
}

@test "the value of a secret is in no file and no output of fettle's" {
	campaign >c.lua
	export HF_TOKEN=hush-4711-named DB_PASSWORD=hush-4712-named GITHUB_TOKEN=hush-4713-other AWS_SECRET_ACCESS_KEY=hush-4714-other
	"$FETTLE" run -w ws c.lua >out 2>&1
	grep -qF 'no access with ***' out # the error of the arm that failed is quoted
	log=$(grep -rl 'hush-4711' ws/blocks | head -n 1)
	[[ $log == */out ]]
	for form in '' --json '--format=csv' '--format=html'; do
		"$FETTLE" report -w ws ${form:+"$form"} 1 >>out 2>&1 || true
	done
	for as in sbatch json env; do "$FETTLE" recommend -w ws --as $as 1 >>out 2>&1; done
	{
		"$FETTLE" status -w ws 1
		FETTLE_WORKSPACE=ws "$FETTLE" check --effective c.lua
		"$FETTLE" check c.lua
		"$FETTLE" plan c.lua
		"$FETTLE" diagnose "$log" || true
	} >>out 2>&1
	[ "$(wc -l <out)" -gt 200 ]
	sqlite3 ws/fettle.db .dump >dump
	run ! grep -n 'hush-' out dump
	run ! grep -rl --exclude=out 'hush-' ws
	run ! grep -rlE 'hush-471[234]' ws
}

@test "a value that would be stored is refused, by file and line; what only looks like one is not" {
	export HF_TOKEN=x DB_PASSWORD=x
	campaign 'env = { AWS_SECRET_ACCESS_KEY = "wJalrXUtnFEMI/K7MDENG" },' >c.lua
	for command in check run; do
		run -2 "$FETTLE" $command c.lua
		[[ $output == *'c.lua:13: workload.env.AWS_SECRET_ACCESS_KEY: AWS_SECRET_ACCESS_KEY has the name of a secret'* ]]
		[[ $output == *'write secrets = { "AWS_SECRET_ACCESS_KEY" }'* ]]
		[[ $output != *wJalr* ]]
	done
	[ ! -e fettle-workspace ]
	campaign 'env = { OPENAI_API_KEY = "EMPTY", TOKENIZERS_CACHE_OF = "somewhere-else", MY_KEYS = "/etc/keys/of/mine",
		SORT_KEY = "length,then,id" },' >c.lua
	run -0 "$FETTLE" check c.lua
}
