-- SPDX-License-Identifier: GPL-2.0-or-later
-- Truth: the baseline computes 3 % more a step than it needs to, drag = 0 removes that; the other knobs do nothing.
-- real_aa.sh runs it many times. CPU, seed and repeats are put in there.
return {
	name = "real-drag",
	question = "Which of three knobs takes the 3 % away?",
	workload = {
		name = "real-drag",
		command = { "taskset", "-c", "0", "planted", "--cpu", "--work-ms", "5", "--drag", "3" },
		window = { warmup_steps = 5, steps = 40 },
		metrics = { file = true },
		limits = { trial_s = 30 },
	},
	objective = { metric = "throughput_samples_per_s", stat = "median" },
	guards = { loss = 0.01 },
	knobs = {
		{ name = "null_a", arg = "--null-a", class = "neutral", values = { 1 } },
		{ name = "drag", arg = "--drag", class = "neutral", values = { 0 } },
		{ name = "idle", env = "PLANT_UNREAD", class = "neutral", values = { "fast" } },
	},
	scheduler = "local",
	mode = "standard",
	rounds = 1,
	repeats = 1,
	seed = 1,
}
