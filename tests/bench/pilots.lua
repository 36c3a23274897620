-- SPDX-License-Identifier: GPL-2.0-or-later
-- Single-node blocks of about a second (two arms of half a second): tests/bench/pilots.sh puts the numbers in.
return {
	name = "pilots",
	question = "Do pilots keep the nodes of a cluster busy?",
	workload = {
		command = { "/bin/sleep", "0.5" },
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
