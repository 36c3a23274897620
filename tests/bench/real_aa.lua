-- SPDX-License-Identifier: GPL-2.0-or-later
-- Truth: no knob does anything. real_aa.sh runs it many times: what is accepted is false. CPU, seed and repeats are
-- put in there.
return {
	name = "real-aa",
	question = "Does any of three idle knobs help?",
	workload = {
		name = "real",
		command = { "taskset", "-c", "0", "planted", "--cpu", "--work-ms", "5" },
		window = { warmup_steps = 5, steps = 40 },
		metrics = { file = true },
		limits = { trial_s = 30 },
	},
	objective = { metric = "throughput_samples_per_s", stat = "median" },
	guards = { loss = 0.01 },
	knobs = {
		{ name = "null_a", arg = "--null-a", class = "neutral", values = { 1 } },
		{ name = "null_b", arg = "--null-b", class = "neutral", values = { 1 } },
		{ name = "idle", env = "PLANT_UNREAD", class = "neutral", values = { "fast" } },
	},
	scheduler = "local",
	mode = "standard",
	rounds = 2,
	repeats = 1,
	seed = 1,
}
