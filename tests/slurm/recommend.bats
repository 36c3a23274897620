#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The sbatch form of a recommendation, read by the real sbatch: options with quotes, backslashes and
# number signs arrive as they were written, and the value reaches every rank.
# shellcheck disable=SC2016 # the script of bash -c is meant as it is
@test "recommend --as sbatch: Slurm reads what the campaign said" {
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	dir="$BATS_TEST_TMPDIR/my \"dir\" it's #1"
	mkdir "$dir"
	cat >"$BATS_TEST_TMPDIR/c.lua" <<-'END'
		local dir = "DIR"
		return {
			name = "quoted",
			workload = { command = { "printenv", "QUOTED" }, workdir = dir,
				window = { warmup_steps = 5, steps = 20 }, metrics = { file = true } },
			objective = "throughput_samples_per_s",
			resources = { nodes = 2, tasks_per_node = 1, launcher = "srun",
				account = [[a "b" c\d 'e' #f]] },
			knobs = { { name = "quoted", env = "QUOTED", values = { [[it's $HOME "x" #y]] }, class = "neutral" } },
			mode = "quick",
			rounds = 1,
		}
	END
	sed -i "s|\"DIR\"|[[$dir]]|" "$BATS_TEST_TMPDIR/c.lua"
	echo '{"effects":{"QUOTED=":0.3},"sd_run":0.01,"sd_alloc":0.01}' >"$BATS_TEST_TMPDIR/truth.json"
	export FETTLE_WORKSPACE=$BATS_TEST_TMPDIR/ws
	"$FETTLE" run "$BATS_TEST_TMPDIR/c.lua" -s fake -q --fake "$BATS_TEST_TMPDIR/truth.json"
	"$FETTLE" recommend --as sbatch -o "$BATS_TEST_TMPDIR/job.sh"
	run "$TOP/tests/slurm/cluster.sh" run "$BATS_TEST_TMPDIR/cluster" -- bash -c '
		sbatch --wait -o "$1/out.txt" "$1/job.sh" && scontrol -o show job' bash "$BATS_TEST_TMPDIR"
	[ "$status" -eq 0 ]
	[[ $output == *"Account=a \"b\" c\\d 'e' #f "* ]]
	[[ $output == *"WorkDir=$dir"* ]]
	[[ $output == *'NumNodes=2 '* ]]
	[ "$(sort -u "$BATS_TEST_TMPDIR/out.txt")" = "it's \$HOME \"x\" #y" ]
	[ "$(wc -l <"$BATS_TEST_TMPDIR/out.txt")" -eq 2 ]
}
