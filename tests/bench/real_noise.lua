-- SPDX-License-Identifier: GPL-2.0-or-later
-- The workload of real_aa.lua without knobs: its noise, from which real_aa.sh chooses r.
return {
	name = "real-noise",
	workload = {
		name = "real",
		command = { "taskset", "-c", "0", "planted", "--cpu", "--work-ms", "5" },
		window = { warmup_steps = 5, steps = 40 },
		metrics = { file = true },
		limits = { trial_s = 30 },
	},
	objective = { metric = "throughput_samples_per_s", stat = "median" },
	scheduler = "local",
	blocks = { aa = 16 },
	repeats = 1,
	seed = 1,
}
