-- SPDX-License-Identifier: MIT
-- When should FSDP gather parameters, and may it keep them for the backward pass?
-- About eight minutes on two GPUs. Needs PyTorch 2.6 or later with CUDA; scheduler local.
-- Keeping them costs memory: the guard on it is wide on purpose, and the report shows what was paid.
return {
	name = "fsdp-prefetch",
	question = "Which settings of FSDP hide its gathering of parameters on these GPUs?",
	workload = workload("fsdp"),
	objective = "throughput_samples_per_s",
	second_objective = "mem_peak_reserved_gib",
	guards = {
		loss = { margin = 0.01, stat = "last" },
		mem_peak_reserved_gib = 0.25,
	},
	knobs = {
		knob("torch_fsdp2_no_reshard_after_forward", { arg = "--no-reshard-after-forward" }),
		knob("forward_prefetch", { arg = "--forward-prefetch", type = "int", default = 0, values = { 1, 2 } }),
		NCCL_MAX_CTAS = { 8 },
	},
	mode = "quick",
	rounds = 2,
	warmup_trials = 0, -- every trial is a process of its own with 20 steps of warm-up
	budget = { minutes = 30 },
	blocks = { aa = 3, final = 3, soak = 3 },
}
