-- SPDX-License-Identifier: MIT
-- PyTorch's DistributedDataParallel. Its settings are arguments of a constructor: these knobs fit scripts
-- that take them on the command line; pass them otherwise with knob(..., { arg = "--your-name" }).
-- Proof: what DDP says of itself on every rank when the workload's environment has
-- TORCH_CPP_LOG_LEVEL=INFO and TORCH_DISTRIBUTED_DEBUG=INFO (without them the arm is invalid).
local exposed <const> = relieves("comm_exposed_ratio", "communication that nothing hides")

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
		proof = { level = "acknowledged", fact = "ddp.gradient_as_bucket_view" },
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
		proof = { level = "acknowledged", fact = "ddp.bucket_cap_mb" },
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
		proof = "delivered", -- DDP reports it only after its first steps
		bottleneck = "communication",
		expect = exposed,
		risk = "wrong gradients, without a word, where the graph does change",
		notes = "needed for reentrant checkpointing; seldom faster",
	},
}
