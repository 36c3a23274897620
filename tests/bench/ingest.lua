-- SPDX-License-Identifier: GPL-2.0-or-later
-- Blocks of 100 trials on scheduler fake: tests/bench/ingest.sh puts their number in.
return {
	name = "ingest",
	question = "What does it cost to take in and keep the results of many trials?",
	workload = {
		command = { "true" },
		window = { warmup_steps = 1, steps = 3 },
		metrics = { file = true },
	},
	objective = "throughput_samples_per_s",
	scheduler = "fake",
	mode = "quick",
	rounds = 1,
	repeats = 50,
	warmup_trials = 0,
	blocks = { aa = 1000, final = 0, soak = 0 },
	seed = 1,
}
