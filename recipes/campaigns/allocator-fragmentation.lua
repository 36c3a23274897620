-- SPDX-License-Identifier: MIT
-- How much memory does PyTorch's caching allocator hold back when the length of batches varies?
-- About six minutes on one GPU. Needs PyTorch with CUDA; scheduler local.
-- The objective is the memory that the allocator reserved at its peak; throughput may not fall by more than 2 %.
-- On an otherwise empty device nothing fails for want of memory: what is measured is how much larger a model or
-- batch would fit. Settings that trade memory for speed show it in the guard.
return {
	name = "allocator-fragmentation",
	question = "Which setting of the allocator makes training with varying lengths hold least memory?",
	workload = workload("gpt", {
		command = { "python3", path("../workloads/gpt/train.py"), "--varied-lengths", "--num-workers", "4" },
	}),
	objective = { metric = "mem_peak_reserved_gib", stat = "max" },
	guards = {
		throughput_tokens_per_s = 0.02,
		loss = { margin = 0.01, stat = "last" },
	},
	knobs = {
		expandable_segments = { "True" },
		max_split_size_mb = { 64, 512 },
		garbage_collection_threshold = { 0.8 },
		roundup_power2_divisions = { 4 },
	},
	mode = "quick",
	rounds = 1,
	warmup_trials = 0, -- every trial is a process of its own with 15 steps of warm-up
	budget = { minutes = 30 },
	blocks = { aa = 3, final = 3, soak = 3 },
}
