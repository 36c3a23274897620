-- SPDX-License-Identifier: MIT
-- What makes data-parallel training faster when reducing the gradients is a good part of the step?
-- About ten minutes on two GPUs. Needs PyTorch with CUDA; runs where it is started (scheduler local).
-- Tried: DDP's own settings and NCCL's. The loss is a guard: at equal steps it may not become worse.
-- NCCL_NCHANNELS is here on purpose: no NCCL reads it. Lint says so and leaves it out; without its rules the arm
-- would run and be declared invalid, since NCCL never acknowledges it: never "no gain".
return {
	name = "ddp-overlap",
	question = "What makes data-parallel training on these GPUs faster without changing its loss?",
	workload = workload("ddp"),
	objective = "throughput_samples_per_s",
	guards = {
		loss = { margin = 0.01, stat = "last" },
		mem_peak_reserved_gib = 0.05,
	},
	knobs = {
		"gradient_as_bucket_view",
		"bucket_cap_mb",
		NCCL_MAX_CTAS = { 4 },
		NCCL_PROTO = { "Simple" },
		NCCL_BUFFSIZE = { 8388608 },
		{
			name = "NCCL_NCHANNELS",
			summary = "a name that NCCL has never had: NCCL_MIN_CTAS and NCCL_MAX_CTAS are meant",
			env = "NCCL_NCHANNELS",
			class = "neutral",
			values = { 8 },
			proof = { level = "acknowledged", fact = "nccl.env.NCCL_NCHANNELS" },
			bottleneck = "communication",
		},
	},
	mode = "quick",
	rounds = 1,
	warmup_trials = 0, -- every trial is a process of its own with 20 steps of warm-up
	budget = { minutes = 30 },
	blocks = { aa = 3, final = 3, soak = 3 },
}
