-- SPDX-License-Identifier: MIT
-- What do reduced precision, torch.compile and a fused optimizer give on this GPU?
-- About eight minutes on one GPU. Needs PyTorch 2 with CUDA; scheduler local.
-- They change how sums are rounded (class numerics): a win is accepted pending a long run, fettle converge.
-- Loading is out of the way (batches are on the device before the first step), so compute is what is measured.
return {
	name = "precision-and-compile",
	question = "Which precision and which compilation make this model train fastest at the same loss?",
	workload = workload("gpt", {
		command = { "python3", path("../workloads/gpt/train.py"), "--cached-batches", "75" },
		limits = { trial_s = 240 }, -- the first steps compile
	}),
	objective = "throughput_tokens_per_s",
	guards = {
		loss = { margin = 0.01, stat = "last" },
		mem_peak_reserved_gib = 0.10,
	},
	knobs = {
		{
			name = "tf32",
			summary = "TF32 for float32 matrix products: 10 bits of mantissa",
			arg = "--tf32", flag = true,
			class = "numerics",
			default = false, values = { true },
			bottleneck = "compute",
		},
		{
			name = "amp",
			summary = "autocast to bfloat16; weights and optimizer stay in float32",
			arg = "--amp", flag = true,
			class = "numerics",
			default = false, values = { true },
			proof = { level = "effective", metric = "mem_peak_allocated_gib", expect = "change" },
			bottleneck = "compute",
		},
		{
			name = "compile",
			summary = "torch.compile of the model: fused kernels",
			arg = "--compile", flag = true,
			class = "numerics",
			default = false, values = { true },
			bottleneck = "compute",
		},
		{
			name = "fused_optimizer",
			summary = "one kernel for the whole optimizer step",
			arg = "--fused-optimizer", flag = true,
			class = "numerics",
			default = false, values = { true },
			bottleneck = "compute",
		},
	},
	mode = "quick",
	rounds = 3,
	warmup_trials = 0, -- every trial is a process of its own with 15 steps of warm-up
	budget = { minutes = 40 },
	blocks = { aa = 3, final = 3, soak = 3 },
}
