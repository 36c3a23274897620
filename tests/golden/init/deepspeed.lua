-- Written by `fettle init deepspeed.sbatch`; the script was read, not run. Recognised: the Hugging
-- Face Trainer.
-- Look it over, then: fettle check, fettle plan, fettle run.
-- deepspeed.sbatch:13: what HF_HOME is, only the shell knows: it stays with the script
return {
	name = "zero3",
	workload = {
		-- the lines of deepspeed.sbatch up to its launch on line 17; the arguments here are given again behind
		-- its own, and the last one counts
		command = { "./deepspeed.fettle.sh" },
		framework = "hf_trainer",
		env = {
			NCCL_DEBUG = "INFO",
			NCCL_DEBUG_SUBSYS = "INIT,ENV",
			OMP_NUM_THREADS = "16", -- line 11
			PYTHONUNBUFFERED = "1",
			TOKENIZERS_PARALLELISM = "false", -- line 12
		},
		-- counted are lines of the log, which tells of 5 steps each
		window = { warmup_steps = 4, steps = 20, pattern = "\\{'loss':" },
		metrics = { probe = "hf_trainer" },
		limits = { trial_s = 1800 },
	},
	resources = {
		partition = "gpu",
		nodes = 1,
		gres = "gpu:a100:4",
		cpus_per_task = 64,
		mem_gib_per_node = 400,
		launcher = "script", -- it starts its ranks itself
	},
	objective = "step_time_ms",
	guards = { loss = 0.01 },
	knobs = {
		OMP_NUM_THREADS = { 1, 2, 4, 8 },
		"expandable_segments",
		"NCCL_BUFFSIZE",
		"NCCL_MIN_CTAS",
	},
	scheduler = "slurm",
	mode = "quick",
}
