-- SPDX-License-Identifier: MIT
-- Do the nodes of a partition still train as fast as each other, and as they did?
-- About five minutes a node. Needs Slurm and PyTorch with CUDA on the nodes (on CPU nodes it is slow, and works).
-- One configuration, the same each night, on every node in turn; nothing is tuned. Afterwards `fettle nodes` names
-- the slow ones with an interval and what their clocks, throttle reasons and error counters say.
-- Put your own partition and account into resources, and the number of nodes into blocks.aa (two blocks a node).
return {
	name = "nightly-health",
	question = "Is every node of the partition as fast as the others?",
	workload = workload("gpt", {
		command = { "python3", path("../workloads/gpt/train.py"), "--amp", "--fused-optimizer", "--cached-batches", "75" },
	}),
	resources = { nodes = 1, gpus_per_node = 1, placement = "spread" },
	objective = "throughput_samples_per_s",
	mode = "strict",
	blocks = { aa = 16 },
	budget = { minutes = 120 },
}
