# SPDX-License-Identifier: GPL-2.0-or-later
# Three nights on the cluster, their dates given: in the third the tool chain that the workload is run with is another
# one, and it is really slower.

setup() {
	load common
	load campaign
	WS=$BATS_TEST_TMPDIR/ws
	SW=$BATS_TEST_TMPDIR/sw
	export TZ=UTC
	cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
	end_all_jobs
	cluster wait
}

# Releases 1.2 and 1.3 of the tool chain; `current` is what the cluster has. A step sleeps, three times as long with 1.3.
install_toolchain() {
	mkdir -p "$SW/1.2" "$SW/1.3" night
	echo 1.2 >"$SW/1.2/VERSION"
	echo 0 >"$SW/1.2/drag"
	echo 1.3 >"$SW/1.3/VERSION"
	echo 200 >"$SW/1.3/drag"
	ln -s 1.2 "$SW/current"
	printf '#!/bin/sh\nexec planted --work-ms 20 --drag "$(cat "$SW/drag")"\n' >train.sh
	chmod +x train.sh
	cat >night/train.lua <<-END
		return {
			name = "train",
			workload = {
				command = { "$PWD/train.sh" },
				env = { SW = "$SW/current" },
				window = { warmup_steps = 1, steps = 8 },
				metrics = { file = true },
				limits = { trial_s = 60 },
			},
			objective = { metric = "step_time_ms", stat = "median" },
			min_effect = 0.3,
			canary = true,
			fingerprint = { toolchain = { file = "$SW/current/VERSION", set = { env = { SW = "$SW/{value}" } } } },
			warmup_trials = 0,
			scheduler = "slurm",
		}
	END
}

nightly() { "$FETTLE" nightly night -w "$WS" "$@"; }

@test "three nights: what changed in the third is confirmed in it, by night and key, and the status is 1" {
	install_toolchain
	nightly --night 2026-12-01
	nightly --night 2026-12-02 >page
	cat page
	grep -q 'nothing moved' page
	ln -sfn 1.3 "$SW/current"
	run nightly --night 2026-12-03
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *'regression 1: ended: confirmed: '* ]]
	[[ $output == *'CONFIRMED regressions, open'*'1  since 2026-12-03  train'*', step_time_ms +'*'likeliest cause: toolchain 1.2 -> 1.3, proved'* ]]
	# the same night again measures nothing and says the same
	trials=$(sql 'SELECT count(*) FROM trial')
	run nightly --night 2026-12-03 --json
	[ "$status" = 1 ]
	jq -e '.status == 1 and .open_confirmed == 1 and (.regressions | length == 1) and
		(.regressions[0] | .night == "2026-12-03" and .level == "confirmed" and .est > 0.3 and .cause.key == "toolchain" and
		.cause.was == "1.2" and .cause.is == "1.3" and .cause.proved)' <<<"$output"
	[ "$(sql 'SELECT count(*) FROM trial')" = "$trials" ]
	run "$FETTLE" regressions -w "$WS"
	echo "$output"
	[[ $output == *2026-12-03*toolchain* ]]
	# somebody takes it on: nobody is paged for it again
	"$FETTLE" regressions ack 1 --note 'a ticket is open' -w "$WS"
	nightly --night 2026-12-03 | grep -q 'acknowledged.*a ticket is open'
	# nodes that wait longest have their turn: two blocks a night, and no two nodes alone
	[ "$(sql "SELECT count(DISTINCT n.node) FROM canary c JOIN block b ON b.stage = c.stage JOIN attempt a ON a.block = b.id
		JOIN allocation_node n ON n.allocation = a.allocation WHERE c.purpose = 'night'")" -ge 3 ]
	[ -z "$(squeue -h)" ]
}

@test "the scrontab's job is one that Slurm takes, and its line is one of cron" {
	local file=$HERE/../../recipes/nightly/scrontab
	if command -v scrontab >/dev/null; then
		cluster set ScronParameters=enable
		scrontab "$file"
		scrontab -l | grep -q 'fettle nightly'
		scrontab -r
		cluster set ScronParameters=
	fi
	{ printf '#!/bin/sh\n'; sed -n 's/^#SCRON/#SBATCH/p' "$file"; echo true; } >job.sh
	[ "$(grep -c '^#SBATCH --' job.sh)" -ge 5 ]
	sbatch --test-only job.sh
	sed 's/--open-mode=append/--open-modus=append/' job.sh >bad.sh # Slurm does look
	! sbatch --test-only bad.sh || return 1
}
