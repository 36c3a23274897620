-- SPDX-License-Identifier: MIT
-- Do the nodes of a partition still train as fast as each other, and as they did?
-- About five minutes a node. Needs Slurm and PyTorch with CUDA on the nodes (on CPU nodes it is slow, and works).
-- A canary: one configuration, the same each night, on every node in turn; nothing is tuned. Each night is a point of
-- its series, with the value of every node; `fettle nodes` names the slow ones with an interval and what their clocks,
-- throttle reasons and error counters say.
-- Put your own partition and account into resources, and the number of nodes into canary.blocks (two blocks a node).
return {
	name = "nightly-health",
	question = "Is every node of the partition as fast as the others, and as it was?",
	workload = workload("gpt", {
		command = { "python3", path("../workloads/gpt/train.py"), "--amp", "--fused-optimizer", "--cached-batches", "75" },
	}),
	resources = { nodes = 1, gpus_per_node = 1, placement = "spread" },
	objective = "throughput_samples_per_s",
	canary = { blocks = 16, reference = false },
	repeats = 2,
	budget = { minutes = 120 },
}
