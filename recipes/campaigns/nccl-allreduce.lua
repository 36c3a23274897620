-- SPDX-License-Identifier: MIT
-- Does any setting of NCCL beat its own choice, for all-reduce on the GPUs of this machine?
-- Large messages (64 MiB to 1 GiB), as gradients and shards are; below, the latency of a launch is what is measured.
-- About eight minutes on two GPUs. Needs PyTorch with CUDA; runs where it is started (scheduler local).
-- NCCL_NCHANNELS is here on purpose: no NCCL reads it. Lint says so and leaves it out; without its rules the arm
-- would run and be declared invalid, since NCCL never acknowledges it: never "no gain".
-- For the figures of each size: fettle report, "Bus bandwidth by size".
return {
	name = "nccl-allreduce",
	question = "Does any setting of NCCL give more bus bandwidth than its own choice?",
	workload = workload("allreduce"),
	objective = "busbw_avg_gb_per_s",
	knobs = {
		NCCL_ALGO = { "allreduce:tree", "allreduce:ring" },
		NCCL_PROTO = { "^LL128", "Simple" },
		NCCL_MIN_CTAS = { 32 },
		NCCL_MAX_CTAS = { 8 },
		NCCL_BUFFSIZE = { 8388608 },
		NCCL_P2P_LEVEL = { "NVL" },
		{
			name = "NCCL_NCHANNELS",
			summary = "a name that NCCL has never had: NCCL_MIN_CTAS and NCCL_MAX_CTAS are meant",
			env = "NCCL_NCHANNELS",
			class = "neutral",
			values = { 32 },
			proof = { level = "acknowledged", fact = "nccl.env.NCCL_NCHANNELS" },
			bottleneck = "communication",
		},
	},
	mode = "quick",
	rounds = 2,
	warmup_trials = 0, -- every trial is a process of its own that warms up each size
	budget = { minutes = 30 },
	blocks = { aa = 4, final = 4, soak = 3 },
}
