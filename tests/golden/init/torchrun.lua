-- Written by `fettle init torchrun.sbatch`; the script was read, not run. Recognised: no framework
-- that fettle knows.
-- Look it over, then: fettle check, fettle plan, fettle run.
-- torchrun.sbatch:22: NCCL_DEBUG is INFO in trials: NCCL's own lines prove its settings
return {
	name = "resnet",
	workload = {
		-- the lines of torchrun.sbatch up to its launch on line 22; the arguments here are given again behind
		-- its own, and the last one counts
		command = { "./torchrun.fettle.sh", "--num-workers", "8" },
		env = {
			LOGLEVEL = "INFO", -- line 18
			NCCL_DEBUG = "INFO", -- line 19
			NCCL_DEBUG_SUBSYS = "INIT,ENV",
			OMP_NUM_THREADS = "8", -- line 20
			PYTHONUNBUFFERED = "1",
		},
		window = { warmup_steps = 20, steps = 100, pattern = "(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)" },
		-- name what your log says: (?<loss>\S+), (?<step_time_ms>\S+), (?<throughput_samples_per_s>\S+)
		metrics = { pattern = "(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)" },
		limits = { trial_s = 1800 },
	},
	resources = {
		partition = "gpu",
		nodes = 2,
		tasks_per_node = 1,
		gpus_per_task = "4",
		cpus_per_task = 32,
		constraint = "nvme&ib",
		launcher = "script", -- it starts its ranks itself
	},
	objective = "throughput_steps_per_s",
	-- guards = { loss = 0.01 } as soon as the log's loss is read: without it nobody looks whether training
	-- still learns
	knobs = {
		knob("num_workers", { arg = "--num-workers", values = { 1, 2, 4 } }),
		OMP_NUM_THREADS = { 1, 2, 4 },
		"expandable_segments",
		"NCCL_BUFFSIZE",
		"NCCL_MIN_CTAS",
		"NCCL_IB_QPS_PER_CONNECTION",
		"NCCL_CROSS_NIC",
	},
	scheduler = "slurm",
	mode = "quick",
}
