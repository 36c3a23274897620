-- SPDX-License-Identifier: MIT
-- What do reduced precision, torch.compile and a fused optimizer give on this GPU?
-- About half an hour on one GPU, for the most part compiling: it took 31 minutes on an H200.
-- Needs PyTorch 2 with CUDA; scheduler local.
-- They change how sums are rounded (class numerics): a win is accepted pending a long run, fettle converge: nine
-- minutes there. Three seeds settled nothing: runs that differ in rounding alone end 1.3 % apart.
-- Loading is out of the way (batches are on the device before the first step), so compute is what is measured.
return {
	name = "precision-and-compile",
	question = "Which precision and which compilation make this model train fastest at the same loss?",
	workload = workload("gpt", {
		command = { "python3", path("../workloads/gpt/train.py"), "--cached-batches", "75" },
		limits = { trial_s = 240 }, -- the first steps compile
	}),
	objective = "throughput_samples_per_s",
	guards = {
		loss = { margin = 0.01, stat = "last" },
		mem_peak_reserved_gib = 0.10,
	},
	knobs = {
		knob("tf32", { arg = "--tf32", flag = true, default = false }),
		knob("bf16", { arg = "--amp" }),
		"compile",
		"fused_optimizer",
	},
	mode = "quick",
	rounds = 3,
	warmup_trials = 0, -- every trial is a process of its own with 15 steps of warm-up
	budget = { minutes = 40 },
	blocks = { aa = 3, final = 3, soak = 3 },
	converge = { steps = 400, seeds = 8, margin = 0.01, seed_env = "SEED", trial_s = 900 },
}
