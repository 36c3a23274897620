-- SPDX-License-Identifier: GPL-2.0-or-later
-- 5,000 trials of /bin/true in blocks of 20 (two arms, ten runs each): what a trial costs beside its work.
return {
	name = "overhead",
	question = "What does fettle add to a trial?",
	workload = {
		command = { "/bin/true" },
		workdir = "/",
		limits = { trial_s = 10 },
	},
	objective = { metric = "trial_wall_s", stat = "value" },
	repeats = 10,
	warmup_trials = 0,
	mode = "quick",
	blocks = { aa = 250 },
	seed = 1,
}
