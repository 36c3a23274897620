-- SPDX-License-Identifier: GPL-2.0-or-later
-- A campaign that is as large as they get: a hundred hypotheses, each with a verdict, and ten thousand trials.
local values = {}
for i = 1, 100 do
	values[i] = i
end
return {
	name = "large",
	question = "What does a report of a hundred experiments and ten thousand trials cost?",
	workload = {
		command = { "true" },
		workdir = "/",
		window = { warmup_steps = 5, steps = 20 },
		metrics = { file = true },
	},
	objective = "throughput_samples_per_s",
	resources = { gpus_per_node = 8 },
	knobs = { { name = "size", env = "SIZE", values = values, class = "neutral" } },
	mode = "quick",
	rounds = 100,
	min_effect = 0.02,
	repeats = 13,
	blocks = { aa = 3, final = 4, soak = 3 },
}
