-- SPDX-License-Identifier: MIT
-- Fewer bytes for gradients: compression, and reduction in fewer bits. Each changes what is learnt from a step,
-- so none is kept before a long run has held the loss.
-- Half of the bytes: half of what is exposed can go.
local function halves(_, s)
	local share = s.comm_exposed_ratio
	if share == nil then
		return { why = "how much of the step goes into communication that nothing hides was not measured" }
	end
	local most = ceiling_of(share / 2)
	return {
		ceiling = most,
		worth_trying = most >= 0.01,
		why = string.format("half of the bytes: of the %s of the step that communication is exposed, half at most "
			.. "can go", percent(share)),
	}
end

return {
	{
		name = "gradient_compression",
		summary = "gradients are compressed for their all-reduce",
		passed = {
			lightning = "code DDPStrategy(ddp_comm_hook=...)",
			hf_trainer = "not the Trainer sets no hook: model.register_comm_hook in a callback",
			nanogpt = "code model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
			script = "model.register_comm_hook(state, bf16_compress_hook | fp16_compress_hook | powerSGD_hook)",
		},
		one_of = { "none", "bf16", "fp16", "powersgd" },
		default = "none", values = { "bf16", "powersgd" },
		class = "optimisation",
		proof = "delivered",
		documented = "user",
		bottleneck = "communication",
		applies = "DistributedDataParallel with gradients in fp32",
		safe = "none; bf16 with a guard on the loss",
		when = "the all-reduce of fp32 gradients between nodes is exposed",
		expect = among_ranks(halves),
		evidence = "bytes of the all-reduce in NCCL's lines or in the trace",
		risk = "high: gradients are rounded (bf16, fp16) or approximated (powersgd); watch the loss",
		mistakes = {
			"gradients that are in bf16 already gain nothing",
			"powersgd needs its warm-up steps: measure behind them",
			"fp16 overflows where bf16 does not",
		},
		notes = "your script must read it from an argument: give arg",
	},
	{
		name = "communication_data_type",
		summary = "DeepSpeed: type in which gradients are reduced",
		passed = { deepspeed = "key communication_data_type", hf_trainer = "key communication_data_type" },
		one_of = { "fp32", "fp16", "bf16" },
		values = { "bf16" },
		class = "optimisation",
		proof = "delivered",
		documented = "user",
		bottleneck = "communication",
		applies = "DeepSpeed",
		safe = "fp32",
		when = "the reduction of gradients is exposed",
		expect = among_ranks(halves),
		evidence = "DeepSpeed prints its whole configuration at the start",
		risk = "high: sums are rounded; watch the loss",
		notes = "the type of the model by default",
	},
	{
		name = "grad_reduce_in_bf16",
		summary = "Megatron-LM: gradients are reduced in bf16",
		passed = { megatron = "flag --grad-reduce-in-bf16" },
		flag = true,
		default = false, values = { true },
		class = "optimisation",
		proof = { level = "acknowledged", log = "(?i)\\bgrad_reduce_in_bf16 \\.{2,} {value}\\b" },
		documented = "user",
		bottleneck = "communication",
		applies = "Megatron-LM with --bf16",
		safe = "false",
		when = "the reduction of fp32 gradients is exposed",
		expect = among_ranks(halves),
		evidence = "bytes of the reduce-scatter in the trace",
		risk = "high: sums over many ranks are rounded; watch the loss",
		notes = "accumulation stays in fp32 as far as Megatron-LM keeps it there",
	},
	{
		name = "mixed_precision_reduce",
		summary = "type in which FSDP reduces gradients",
		passed = {
			torchtitan = "not --training.mixed_precision_reduce takes float32 alone",
			lightning = "code FSDPStrategy(mixed_precision=MixedPrecision(reduce_dtype=...))",
			script = "MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)",
		},
		one_of = { "float32", "bfloat16" },
		default = "float32", values = { "bfloat16" },
		class = "optimisation",
		proof = "delivered",
		documented = "user",
		bottleneck = "communication",
		applies = "FSDP with mixed precision",
		safe = "float32",
		when = "the reduce-scatter of gradients is exposed",
		expect = among_ranks(halves),
		evidence = "bytes of the reduce-scatter in the trace",
		risk = "high: sums over many ranks are rounded; watch the loss",
		notes = "your script must read it from an argument: give arg",
	},
}
