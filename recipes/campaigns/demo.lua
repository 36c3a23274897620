-- SPDX-License-Identifier: MIT
-- What `make demo` runs: a small CNN on CPU whose training process decodes its own samples.
-- Nothing here is arranged for a result: the workload does not know fettle, two of the knobs do
-- nothing on a machine without GPU, and what the others do depends on the machine.
return {
	name = "demo",
	question = "What makes the demo's training faster on this machine without changing its loss?",

	workload = {
		command = { "/usr/bin/python3", "train.py", "--data", "../../../build/demo-data" },
		workdir = "../workloads/demo",
		window = { warmup_steps = 5, steps = 30 },
		metrics = { file = true }, -- train.py writes a JSON line a step to $FETTLE_METRICS
		limits = { trial_s = 60 },
	},

	objective = "throughput_samples_per_s",
	guards = {
		loss = { margin = 0.01, stat = "last" },
	},

	knobs = {
		num_workers = { 1 },
		OMP_NUM_THREADS = { 1 },
		"jemalloc",
		"pin_memory",
		"expandable_segments",
	},

	scheduler = "local",
	mode = "quick",
	rounds = 1,
	budget = { minutes = 10 },
	blocks = { aa = 3, final = 4, soak = 3 },
}
