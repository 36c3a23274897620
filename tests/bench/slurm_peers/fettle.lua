-- SPDX-License-Identifier: GPL-2.0-or-later
-- Blocks of two no-op trials on single nodes: tests/bench/slurm_peers.sh puts the numbers in.
return {
	name = "slurm-peers",
	question = "What does a trial on Slurm cost?",
	workload = {
		command = { "/bin/true" },
		workdir = "/",
		limits = { trial_s = 10 },
	},
	objective = { metric = "trial_wall_s", stat = "value" },
	resources = { launcher = "exec" },
	warmup_trials = 0,
	mode = "quick",
	blocks = { aa = 1000, final = 0, soak = 0 },
	blocks_per_allocation = 50,
	seed = 1,
	scheduler = "slurm",
}
