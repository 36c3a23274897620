-- SPDX-License-Identifier: MIT
-- Does any setting of NCCL's network transports beat its own choice between nodes?
-- About half an hour on two nodes. Needs Slurm, PyTorch with CUDA on the nodes, and a network between them.
-- Which transport is in use decides what can matter: on InfiniBand and RoCE the queue pairs, on plain Ethernet the
-- sockets. What does not apply is left out with the reason; name it for lint with versions = { transport = "ib" }.
-- Put your own partition, account and number of GPUs into resources.
return {
	name = "nccl-net",
	question = "Does any setting of NCCL's network give more bus bandwidth between nodes than its own choice?",
	workload = workload("allreduce", {
		command = { -- srun starts the ranks
			"python3", path("../workloads/allreduce/allreduce.py"),
			"--min-bytes", "67108864", "--max-bytes", "1073741824", "--factor", "2",
		},
	}),
	resources = { nodes = 2, tasks_per_node = 8, launcher = "srun", gpus_per_node = 8 },
	objective = "busbw_avg_gb_per_s",
	knobs = {
		NCCL_IB_QPS_PER_CONNECTION = { 2, 4 },
		NCCL_IB_SPLIT_DATA_ON_QPS = { 0, 1 },
		NCCL_CROSS_NIC = { 0, 1 },
		NCCL_NET_GDR_LEVEL = { "SYS" },
		NCCL_SOCKET_NTHREADS = { 4 },
		NCCL_NSOCKS_PERTHREAD = { 4 },
	},
	mode = "standard",
	rounds = 2,
	warmup_trials = 0, -- every trial is a set of processes of its own that warms up each size
	budget = { minutes = 120 },
}
