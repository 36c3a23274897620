-- Written by `fettle init pyxis.sbatch`; the script was read, not run. Recognised: nanoGPT.
-- Look it over, then: fettle check, fettle plan, fettle run.
-- pyxis.sbatch:7: --mem=0: all memory of a node is the default of most clusters for a job that has the
-- node for itself; where it is not, say mem_gib_per_node
-- pyxis.sbatch:18: --output=logs/%x-%j-%t.log is left out: the output is read by fettle
return {
	name = "nemo-style",
	workload = {
		-- the lines of pyxis.sbatch up to its launch on line 17; the arguments here are given again behind its
		-- own, and the last one counts
		command = { "./pyxis.fettle.sh" },
		framework = "nanogpt",
		env = {
			NCCL_DEBUG = "INFO",
			NCCL_DEBUG_SUBSYS = "INIT,ENV",
			NCCL_NVLS_ENABLE = "1", -- line 12
			PYTHONUNBUFFERED = "1",
			TORCH_NCCL_AVOID_RECORD_STREAMS = "1", -- line 13
		},
		-- counted are lines of the log, which tells of 10 steps each
		window = { warmup_steps = 2, steps = 10, pattern = "iter \\d+: loss" },
		metrics = { probe = "nanogpt" },
		limits = { trial_s = 1800 },
	},
	resources = {
		nodes = 2,
		tasks_per_node = 8,
		gpus_per_node = 8,
		dependency = "singleton",
		launcher = "script", -- it starts its ranks itself
	},
	objective = "step_time_ms",
	guards = { loss = 0.01 },
	knobs = {
		"OMP_NUM_THREADS",
		"expandable_segments",
		"NCCL_BUFFSIZE",
		"NCCL_MIN_CTAS",
		"NCCL_IB_QPS_PER_CONNECTION",
		"NCCL_CROSS_NIC",
	},
	scheduler = "slurm",
	mode = "quick",
}
