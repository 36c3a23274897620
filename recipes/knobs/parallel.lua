-- SPDX-License-Identifier: MIT
-- How a model is laid over the ranks. Another layout is another job: batch, memory and the order of sums change
-- with it, and so may what fits. One degree at a time; the product of all is the number of ranks.
local exposed <const> = among_ranks(relieves("comm_exposed_ratio", "communication that nothing hides"))

local function degree(t)
	t.type, t.min, t.max = "int", 1, 65536
	t.default = 1
	t.class = "optimisation"
	t.proof = t.proof or "delivered"
	t.documented = "user"
	t.bottleneck = "communication"
	t.expect = t.expect or exposed
	return t
end

return {
	degree {
		name = "tensor_parallel",
		summary = "ranks that share each layer's matrices",
		passed = {
			megatron = "--tensor-model-parallel-size",
			torchtitan = "--parallelism.tensor_parallel_degree",
			lightning = "code ModelParallelStrategy(tensor_parallel_size=...)",
		},
		values = { 2, 4, 8 },
		applies = "models whose layers can be split",
		safe = "no more than the GPUs that NVLink joins",
		when = "a layer does not fit, or data-parallel groups are too large",
		lint = function(value, s)
			if over(s.gpus_per_node, 0) and value > s.gpus_per_node then
				return string.format("%d ranks share a layer, but a node has %d GPUs: each layer would cross the network",
					value, s.gpus_per_node)
			end
		end,
		evidence = "communicators of this size in NCCL's lines",
		risk = "an exchange in each layer: slow beyond one node",
		mistakes = {
			"the hidden size must be a multiple of degree x heads, not of 8 alone",
			"the global batch changes with it unless micro-batch and accumulation follow",
		},
		notes = "as small as memory allows",
	},
	degree {
		name = "pipeline_parallel",
		summary = "ranks that share the layers one after the other",
		passed = {
			megatron = "--pipeline-model-parallel-size",
			torchtitan = "--parallelism.pipeline_parallel_degree",
		},
		values = { 2, 4 },
		applies = "models of many layers",
		safe = "layers a multiple of it; micro-batches several times it",
		when = "the model does not fit a node",
		evidence = "send and recv in the trace; idle time at both ends of a step",
		risk = "the bubble: (p - 1) of m + p - 1 parts are idle",
		mistakes = { "few micro-batches: most of the pipeline waits" },
		notes = "the way to go between nodes: its messages are small",
	},
	degree {
		name = "context_parallel",
		summary = "ranks that share the sequence",
		passed = {
			megatron = "--context-parallel-size",
			torchtitan = "--parallelism.context_parallel_degree",
		},
		values = { 2, 4 },
		applies = "long sequences",
		safe = "no more than the GPUs of a node",
		when = "activations of long sequences do not fit",
		evidence = "mem_peak_reserved_gib",
		risk = "an exchange in each attention",
		mistakes = { "with expandable segments and CUDA graphs torchtitan was seen to hang" },
		notes = "for sequences of tens of thousands of tokens",
	},
	degree {
		name = "expert_parallel",
		summary = "ranks that share the experts",
		passed = {
			megatron = "--expert-model-parallel-size",
			torchtitan = "--parallelism.expert_parallel_degree",
		},
		values = { 2, 4, 8 },
		applies = "mixtures of experts",
		safe = "inside a node, or experts a multiple of it",
		when = "experts do not fit",
		evidence = "all-to-all (SendRecv kernels) in the trace",
		risk = "an all-to-all in each such layer",
		mistakes = { "NCCL_ALGO does nothing for its all-to-all" },
		notes = "NCCL_NCHANNELS_PER_NET_PEER and NCCL_P2P_NET_CHUNKSIZE are its knobs",
	},
	{
		name = "sequence_parallel",
		summary = "Megatron-LM: layer norms and dropout shared over the tensor group",
		passed = { megatron = "flag --sequence-parallel" },
		flag = true,
		default = false, values = { true },
		class = "numerics",
		proof = { level = "acknowledged", log = "(?i)\\bsequence_parallel \\.{2,} {value}\\b" },
		documented = "user",
		bottleneck = "memory",
		applies = "Megatron-LM with tensor parallelism",
		safe = "true with tensor parallelism",
		when = "activations take the memory that a larger micro-batch needs",
		expect = told("activations of the tensor group shrink; the bytes on the wire stay"),
		evidence = "mem_peak_reserved_gib",
		risk = "low",
		mistakes = { "CUDA_DEVICE_MAX_CONNECTIONS must be 1 for its order, on GPUs before Blackwell" },
		notes = "needed by tp_comm_overlap",
	},
	{
		name = "switches",
		summary = "all nodes of the job under one switch",
		passed = {
			srun = "sbatch --switches=1@60: at most one leaf switch, waiting up to 60 minutes for it",
			script = "resources = { switches = \"1@60\" } in a campaign: for all arms",
		},
		type = "text",
		class = "neutral",
		proof = "delivered",
		documented = "user",
		bottleneck = "communication",
		applies = "clusters whose topology Slurm knows",
		safe = "1 with a time to wait",
		when = "the same job is faster on some nights, by where its nodes are",
		expect = between_nodes(relieves("comm_exposed_ratio", "communication that nothing hides")),
		evidence = "SLURM_TOPOLOGY_ADDR of the ranks; `fettle nodes`",
		risk = "the job waits longer in the queue",
		mistakes = { "in one arm only it compares nodes, not settings" },
		notes = "part of the resources: two campaigns, on the same nights, tell what it gives",
	},
	{
		name = "rank_order",
		summary = "which ranks share a node: blocks or cyclic",
		passed = { srun = "srun --distribution=block:block, or cyclic", shell = "SLURM_DISTRIBUTION=block" },
		one_of = { "block", "cyclic" },
		default = "block",
		class = "numerics",
		proof = "delivered",
		documented = "user",
		bottleneck = "communication",
		applies = "several ranks a node on several nodes",
		safe = "block: neighbours share a node",
		when = "the parallel groups that talk most are spread over nodes",
		expect = between_nodes(relieves("comm_exposed_ratio", "communication that nothing hides")),
		evidence = "hosts of the ranks of a communicator in NCCL's lines",
		risk = "sums come in another order",
		mistakes = { "cyclic puts each tensor group over all nodes" },
		notes = "an option of the launcher: frameworks expect blocks",
	},
}
