-- Written by `fettle init lightning.sbatch`; the script was read, not run. Recognised: Lightning.
-- Look it over, then: fettle check, fettle plan, fettle run.
-- lightning.sbatch:5: --mem=0: all memory of a node is the default of most clusters for a job that has
-- the node for itself; where it is not, say mem_gib_per_node
-- lightning.sbatch:7: --signal=SIGUSR1@90 is left out: fettle ends trials itself
return {
	name = "lightning",
	workload = {
		-- the lines of lightning.sbatch up to its launch on line 16; the arguments here are given again behind
		-- its own, and the last one counts
		command = { "./lightning.fettle.sh", "--data.num_workers=6" },
		framework = "lightning",
		env = {
			NCCL_DEBUG = "INFO", -- line 13
			NCCL_DEBUG_SUBSYS = "INIT,ENV",
			PYTHONFAULTHANDLER = "1", -- line 14
			PYTHONUNBUFFERED = "1",
		},
		window = { warmup_steps = 20, steps = 100, pattern = "^Epoch \\d+:.*it/s" },
		metrics = { probe = "lightning" },
		limits = { trial_s = 1800 },
	},
	resources = {
		nodes = 2,
		gpus_per_node = 8,
		tasks_per_node = 8,
		launcher = "script", -- it starts its ranks itself
	},
	objective = "step_time_ms",
	guards = { loss = 0.01 },
	knobs = {
		knob("num_workers", { arg = "--data.num_workers=", values = { 1, 2, 4, 8 } }),
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
