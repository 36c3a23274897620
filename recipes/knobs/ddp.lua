-- SPDX-License-Identifier: MIT
-- PyTorch's DistributedDataParallel. Its settings are arguments of a constructor: these knobs fit scripts
-- that take them on the command line; pass them otherwise with knob(..., { arg = "--your-name" }).
-- Proof: what DDP says of itself on every rank when the workload's environment has
-- TORCH_CPP_LOG_LEVEL=INFO and TORCH_DISTRIBUTED_DEBUG=INFO, which these knobs set in every arm.
local exposed <const> = among_ranks(relieves("comm_exposed_ratio", "communication that nothing hides"))
local SAYS <const> = { TORCH_CPP_LOG_LEVEL = "INFO", TORCH_DISTRIBUTED_DEBUG = "INFO" }

local function acknowledged(fact)
	return { level = "acknowledged", fact = fact, env = SAYS }
end

-- A copy of each gradient in each step: memory traffic of the device, whoever it is sent to.
local function copies()
	return { why = "a copy of every gradient falls away; how long it takes was not measured" }
end

return {
	{
		name = "gradient_as_bucket_view",
		summary = "gradients are views into the buckets that are reduced, not copies of them",
		arg = "--gradient-as-bucket-view", flag = true,
		class = "neutral",
		default = false, values = { true },
		passed = {
			lightning = "code DDPStrategy(gradient_as_bucket_view=True)",
			hf_trainer = "not the Trainer has no such argument",
			nanogpt = "code DDP(model, gradient_as_bucket_view=True) in train.py",
			script = "DistributedDataParallel(gradient_as_bucket_view=True)",
		},
		proof = acknowledged("ddp.gradient_as_bucket_view"),
		documented = "user",
		applies = "DistributedDataParallel",
		safe = "both",
		when = "memory is short, or a copy of all gradients shows in the profile",
		evidence = "mem_peak_allocated_gib falls by the size of the gradients",
		bottleneck = "communication",
		expect = copies,
		risk = "a gradient cannot be detached in place; saves a copy and the memory of all gradients",
		notes = "the gain is the copy of every gradient in each step, whatever the network: also on one node",
	},
	{
		name = "bucket_cap_mb",
		summary = "gradients that are reduced together, in MiB",
		arg = "--bucket-cap-mb",
		class = "numerics", -- with three ranks and more, sums come in another order
		type = "int", min = 1, max = 4096,
		default = 25, values = { 5, 100 },
		passed = {
			hf_trainer = "--ddp_bucket_cap_mb",
			lightning = "code DDPStrategy(bucket_cap_mb=...)",
			nanogpt = "code DDP(model, bucket_cap_mb=...) in train.py",
			script = "DistributedDataParallel(bucket_cap_mb=...)",
		},
		proof = acknowledged("ddp.bucket_cap_mb"),
		documented = "user",
		applies = "DistributedDataParallel",
		safe = "5 to 200",
		when = "many small all-reduces (raise it), or the last ones are not hidden (lower it)",
		evidence = "messages of the all-reduce in NCCL's lines or in the trace",
		mistakes = { "Megatron-LM's --ddp-bucket-size counts elements, not MiB" },
		bottleneck = "communication",
		expect = exposed,
		risk = "large buckets start late and overlap less; small ones pay the latency of each collective",
		notes = "the first bucket is 1 MiB whatever this says",
	},
	{
		name = "static_graph",
		summary = "the same parameters are used in every step: reduce in the order that the first one showed",
		arg = "--static-graph", flag = true,
		class = "neutral",
		default = false, values = { true },
		passed = {
			hf_trainer = "not the Trainer has no such argument",
			lightning = "code DDPStrategy(static_graph=True)",
			nanogpt = "code DDP(model, static_graph=True) in train.py",
			script = "DistributedDataParallel(static_graph=True)",
		},
		documented = "user",
		applies = "DistributedDataParallel",
		safe = "false, unless the graph never changes",
		when = "find_unused_parameters is on and costs, or checkpointing is reentrant",
		mistakes = {
			"it does not switch overlap on: DDP always overlaps",
			"with torch.compile some versions refuse it",
		},
		proof = "delivered", -- DDP reports it only after its first steps
		bottleneck = "communication",
		expect = exposed,
		risk = "wrong gradients, without a word, where the graph does change",
		notes = "needed for reentrant checkpointing; seldom faster",
	},
	{
		name = "find_unused_parameters",
		summary = "look in each step for parameters that got no gradient",
		arg = "--find-unused-parameters", flag = true,
		passed = {
			hf_trainer = "--ddp_find_unused_parameters True/False",
			lightning = "code DDPStrategy(find_unused_parameters=False)",
			nanogpt = "not it is off",
			script = "DistributedDataParallel(find_unused_parameters=False)",
		},
		class = "neutral",
		default = false, values = { true, false },
		defaults = { hf_trainer = true },
		proof = acknowledged("ddp.find_unused_parameters"),
		documented = "user",
		bottleneck = "host",
		applies = "DistributedDataParallel",
		safe = "false, where all parameters are used: else it is an error that names them",
		when = "a script or a framework has it on",
		expect = among_ranks(function(value)
			return {
				worth_trying = value ~= true and value ~= "True",
				why = "the graph is walked in each step only with it on",
			}
		end),
		risk = "an error where parameters really are unused",
		mistakes = { "the Trainer has it on unless gradient checkpointing is: nobody asked for it" },
		notes = "only off is worth trying; on is needed, or it is not",
	},
	{
		name = "TORCH_NCCL_HIGH_PRIORITY",
		summary = "NCCL's streams before those of computing",
		env = "TORCH_NCCL_HIGH_PRIORITY",
		one_of = { "0", "1" },
		default = 0, values = { 1 },
		class = "neutral",
		proof = "delivered",
		documented = "user",
		bottleneck = "communication",
		applies = "torch.distributed with NCCL",
		safe = "0, 1",
		when = "collectives wait behind kernels that compute",
		expect = exposed,
		evidence = "priority of the streams in a trace",
		risk = "low; computing on the critical path may wait",
		mistakes = { "it is PyTorch's: NCCL_HIGH_PRIORITY is read by nobody" },
		notes = "it orders what waits; a kernel that runs is not interrupted",
	},
	{
		name = "TORCH_NCCL_AVOID_RECORD_STREAMS",
		summary = "hold tensors of collectives by reference, not by the allocator's events",
		env = "TORCH_NCCL_AVOID_RECORD_STREAMS",
		one_of = { "0", "1" },
		values = { 0, 1 },
		class = "neutral",
		proof = "delivered",
		documented = "user",
		bottleneck = "memory",
		applies = "torch.distributed with NCCL",
		safe = "1",
		when = "memory is held too long around asynchronous collectives",
		expect = on_gpus(told("memory comes back earlier; a step is faster only if the allocator had to retry")),
		evidence = "alloc_retries, mem_peak_reserved_gib",
		risk = "low",
		mistakes = { "NCCL_AVOID_RECORD_STREAMS is the old name; it is PyTorch's, not NCCL's" },
		notes = "recent builds have it on",
	},
}
