-- SPDX-License-Identifier: MIT
-- Megatron-LM's own ways to hide communication. It prints its arguments at the start, one a line with dots:
-- that is the proof. argparse takes any prefix that is not ambiguous, so a typo may still be an argument.
local exposed <const> = among_ranks(relieves("comm_exposed_ratio", "communication that nothing hides"))

local function argument(t)
	local name = t.arg:gsub("^%-%-", ""):gsub("%-", "_")
	t.passed = { megatron = (t.flag and "flag " or "") .. t.arg }
	t.arg = nil
	t.class = t.class or "neutral"
	t.proof = t.proof or { level = "acknowledged", log = "(?i)\\b" .. (t.says or name) .. " \\.{2,} {value}\\b" }
	t.says = nil
	t.documented = "user"
	t.bottleneck = t.bottleneck or "communication"
	t.expect = t.expect or exposed
	if t.flag then
		t.default, t.values = false, { true }
	end
	return t
end

return {
	argument {
		name = "overlap_grad_reduce",
		arg = "--overlap-grad-reduce", flag = true,
		summary = "reduce gradients while backward goes on",
		class = "numerics",
		applies = "Megatron-LM, data parallel",
		safe = "both",
		when = "'all-grads-sync' of the timers takes a good part of the step",
		evidence = "NCCL kernels beside computing in a trace",
		risk = "low",
		notes = "buckets: see ddp_bucket_size",
	},
	argument {
		name = "overlap_param_gather",
		arg = "--overlap-param-gather", flag = true,
		summary = "gather parameters while forward goes on",
		applies = "Megatron-LM with --use-distributed-optimizer",
		safe = "both",
		when = "the all-gather of parameters is exposed in forward",
		evidence = "NCCL kernels beside computing in a trace",
		risk = "low",
		mistakes = { "without --use-distributed-optimizer it is an error at the start" },
		notes = "put --use-distributed-optimizer in the command first",
	},
	argument {
		name = "use_distributed_optimizer",
		arg = "--use-distributed-optimizer", flag = true,
		summary = "shard the optimiser's state over the data-parallel group",
		class = "numerics",
		bottleneck = "memory",
		applies = "Megatron-LM, data parallel",
		safe = "both",
		when = "memory is short, or the all-gather can be hidden",
		expect = told("memory comes free: a larger micro-batch may fit; the step itself hardly changes"),
		evidence = "mem_peak_reserved_gib",
		risk = "checkpoints have another form",
		notes = "as ZeRO's first stage",
	},
	argument {
		name = "ddp_bucket_size",
		arg = "--ddp-bucket-size",
		summary = "elements that are reduced together",
		type = "int", min = 1000000, max = 2000000000,
		values = { 100000000, 200000000 },
		class = "numerics",
		applies = "Megatron-LM with --overlap-grad-reduce",
		safe = "40000000 to 200000000",
		when = "many small reductions, or the last bucket is not hidden",
		risk = "memory; the last bucket is hidden by nothing",
		mistakes = { "it counts elements, not MiB" },
		notes = "by default 40e6, or 1e6 for each data-parallel rank if that is more",
	},
	argument {
		name = "ddp_pad_buckets",
		arg = "--ddp-pad-buckets-for-high-nccl-busbw", flag = true,
		summary = "buckets of a multiple of 65536 elements a rank",
		class = "numerics",
		applies = "Megatron-LM, large data-parallel groups",
		safe = "both",
		when = "bus bandwidth of reductions is low in large groups",
		expect = between_nodes(relieves("comm_exposed_ratio", "communication that nothing hides")),
		risk = "low; a little memory",
		notes = "for large groups alone",
	},
	argument {
		name = "tp_comm_overlap",
		arg = "--tp-comm-overlap", flag = true,
		summary = "hide the communication of tensor parallelism in the matrix products",
		class = "numerics",
		applies = "Megatron-LM with Transformer Engine, tensor and sequence parallelism",
		safe = "both",
		when = "all-gathers and reduce-scatters of the tensor group are exposed",
		evidence = "pieces of matrix products between pieces of communication in a trace",
		risk = "medium: user buffers take memory, and SMs",
		mistakes = { "without --sequence-parallel nothing overlaps" },
		notes = "--tp-comm-overlap-cfg tunes each matrix product",
	},
	argument {
		name = "no_overlap_p2p_communication",
		arg = "--no-overlap-p2p-communication", flag = true,
		proof = "delivered", -- it prints the opposite, overlap_p2p_comm
		summary = "do not hide the transfers between pipeline stages",
		applies = "Megatron-LM, interleaved pipeline",
		safe = "false",
		when = "to see what hiding them gives, or to go round a hang",
		risk = "low; exposed transfers",
		notes = "interleaving hides them by default",
	},
	argument {
		name = "nccl_communicator_config_path",
		arg = "--nccl-communicator-config-path",
		summary = "CTAs of each communicator, from a YAML file",
		type = "text",
		applies = "Megatron-LM",
		safe = "a file that all nodes see",
		when = "one group's communication takes SMs from another one's computing",
		evidence = "NCCL's channel counts of each communicator",
		risk = "medium",
		mistakes = { "NCCL_MIN_CTAS and NCCL_MAX_CTAS in the environment beat the file" },
		notes = "the values are paths of your own files",
	},
	argument {
		name = "use_nccl_ub",
		arg = "--use-nccl-ub", flag = true,
		says = "nccl_ub",
		summary = "register buffers of the data-parallel group with NCCL",
		applies = "Megatron-LM with NCCL from 2.19 on",
		safe = "both",
		when = "communication that overlaps takes SMs from computing",
		risk = "memory that stays registered",
		notes = "what NCCL_CTA_POLICY and SHARP need",
	},
	argument {
		name = "high_priority_stream_groups",
		arg = "--high-priority-stream-groups",
		summary = "groups whose communication goes before computing",
		type = "text",
		proof = "delivered", -- it prints a list
		applies = "Megatron-LM",
		safe = "one group at a time",
		when = "collectives wait behind kernels that compute",
		risk = "low; computing waits in turn",
		notes = "names of groups, as Megatron-LM calls them",
	},
}
