-- Written by `fettle init megatron.sbatch`; the script was read, not run. Recognised: Megatron-LM.
-- Look it over, then: fettle check, fettle plan, fettle run.
return {
	name = "gpt-1b",
	workload = {
		-- the lines of megatron.sbatch up to its launch on line 82; the arguments here are given again behind
		-- its own, and the last one counts
		command = { "./megatron.fettle.sh", "--num-workers", "2" },
		framework = "megatron",
		env = {
			CUDA_DEVICE_MAX_CONNECTIONS = "1", -- line 21
			NCCL_BUFFSIZE = "8388608", -- line 23
			NCCL_DEBUG = "INFO",
			NCCL_DEBUG_SUBSYS = "INIT,ENV",
			NCCL_IB_HCA = "mlx5", -- line 22
			PYTHONUNBUFFERED = "1",
		},
		-- counted are lines of the log, which tells of 10 steps each
		window = { warmup_steps = 2, steps = 10, pattern = "iteration\\s+\\d+/" },
		metrics = { probe = "megatron" },
		limits = { trial_s = 1800 },
	},
	resources = {
		account = "nlp",
		partition = "h200",
		nodes = 4,
		tasks_per_node = 1,
		gpus_per_node = 8,
		cpus_per_task = 96,
		launcher = "script", -- it starts its ranks itself
	},
	objective = "step_time_ms",
	guards = { loss = 0.01 },
	knobs = {
		knob("num_workers", { arg = "--num-workers", values = { 1, 4, 8 } }),
		"overlap_param_gather",
		OMP_NUM_THREADS = { 1, 2, 4, 8 },
		"expandable_segments",
		NCCL_BUFFSIZE = { 2097152, 16777216 },
		"NCCL_MIN_CTAS",
		"NCCL_IB_QPS_PER_CONNECTION",
		"NCCL_CROSS_NIC",
	},
	scheduler = "slurm",
	mode = "quick",
}
