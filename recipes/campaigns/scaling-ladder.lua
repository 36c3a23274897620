-- SPDX-License-Identifier: MIT
-- How much of its throughput does a rank keep on one node, and on more nodes?
-- About an hour on four nodes, less when the climb ends early. Needs Slurm and PyTorch with CUDA on the nodes.
-- Each rung runs in pairs with the one below, in one allocation; a trial under the profiler on each says what was
-- lost to communication, stragglers and input. The climb ends where more than 10 % is lost, and says why there.
-- Put your own partition, account, GPUs a node and rungs here. On CPU nodes it runs over gloo, slowly.
return {
	name = "scaling-ladder",
	question = "How far does this training scale, and what holds it where it stops?",
	workload = workload("gpt", {
		command = { -- srun starts the ranks
			"python3", path("../workloads/gpt/train.py"), "--parallel", "ddp", "--layers", "4", "--width", "4096",
			"--batch-size", "4", "--lr", "1e-4", "--amp", "--fused-optimizer", "--cached-batches", "80", "--read-loss-late",
		},
	}),
	resources = { launcher = "srun", gpus_per_node = 8 },
	objective = "throughput_samples_per_s",
	ladder = {
		rungs = {
			{ tasks_per_node = 1 },
			{ tasks_per_node = 8 },
			{ nodes = 2, tasks_per_node = 8 },
			{ nodes = 4, tasks_per_node = 8 },
		},
	},
	mode = "standard",
	warmup_trials = 0, -- every trial is a set of processes of its own with 15 steps of warm-up
	budget = { minutes = 180 },
}
