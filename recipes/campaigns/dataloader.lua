-- SPDX-License-Identifier: MIT
-- How should batches be loaded? Workers, batches ahead, pinned memory.
-- About six minutes on one GPU; runs on CPUs as well, slowly. Needs PyTorch; scheduler local.
-- The documents of the workload are tokenised when they are asked for, in Python: a few milliseconds each, which
-- the training process pays itself unless it has workers. More than two rounds: prefetch_factor needs workers first.
-- The order of samples does not depend on the loader, so the loss must be the same to the last bit.
-- With your own: put your command here, and the names of your arguments (recipes/README.md, "knobs").
return {
	name = "dataloader",
	question = "Which settings of the loader make training wait least for its data?",
	workload = workload("gpt"),
	objective = "throughput_samples_per_s",
	guards = {
		loss = { margin = 0.001, stat = "last" },
	},
	knobs = {
		num_workers = { 1, 2, 4, 8 },
		"prefetch_factor",
		"pin_memory",
	},
	mode = "quick",
	rounds = 2,
	warmup_trials = 0, -- every trial is a process of its own with 15 steps of warm-up
	budget = { minutes = 30 },
	blocks = { aa = 3, final = 3, soak = 3 },
}
