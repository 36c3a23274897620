-- Written by `fettle init accelerate.sbatch`; the script was read, not run. Recognised: the Hugging
-- Face Trainer.
-- Look it over, then: fettle check, fettle plan, fettle run.
return {
	name = "accelerate",
	workload = {
		-- the lines of accelerate.sbatch up to its launch on line 34; the arguments here are given again
		-- behind its own, and the last one counts
		command = { "./accelerate.fettle.sh", "--dataloader_num_workers", "4" },
		framework = "hf_trainer",
		env = {
			GPUS_PER_NODE = "4", -- line 12
			NCCL_DEBUG = "INFO",
			NCCL_DEBUG_SUBSYS = "INIT,ENV",
			PYTHONUNBUFFERED = "1",
			SCRIPT = "run_clm.py", -- line 22
		},
		-- counted are lines of the log, which tells of 10 steps each
		window = { warmup_steps = 2, steps = 10, pattern = "\\{'loss':" },
		metrics = { probe = "hf_trainer" },
		limits = { trial_s = 1800 },
	},
	resources = {
		nodes = 2,
		tasks_per_node = 1,
		gpus_per_node = 4,
		cpus_per_task = 48,
		launcher = "script", -- it starts its ranks itself
	},
	objective = "step_time_ms",
	guards = { loss = 0.01 },
	knobs = {
		knob("num_workers", { arg = "--dataloader_num_workers", values = { 1, 2, 8 } }),
		OMP_NUM_THREADS = { 1, 2, 4, 8 },
		"expandable_segments",
		"NCCL_BUFFSIZE",
		"NCCL_MIN_CTAS",
		"NCCL_IB_QPS_PER_CONNECTION",
		"NCCL_CROSS_NIC",
	},
	scheduler = "slurm",
	mode = "quick",
}
