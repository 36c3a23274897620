-- Written by `fettle init apptainer.sbatch`; the script was read, not run. Recognised: no framework
-- that fettle knows.
-- Look it over, then: fettle check, fettle plan, fettle run.
-- apptainer.sbatch:20: tee does not write fold.log in trials
return {
	name = "apptainer",
	workload = {
		-- the lines of apptainer.sbatch up to its launch on line 19; the arguments here are given again behind
		-- its own, and the last one counts
		command = { "./apptainer.fettle.sh", "--workers", "4" },
		env = {
			NCCL_DEBUG = "INFO",
			NCCL_DEBUG_SUBSYS = "INIT,ENV",
			OMP_NUM_THREADS = "8", -- line 14
			PYTHONUNBUFFERED = "1",
		},
		window = { warmup_steps = 20, steps = 100, pattern = "(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)" },
		-- name what your log says: (?<loss>\S+), (?<step_time_ms>\S+), (?<throughput_samples_per_s>\S+)
		metrics = { pattern = "(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)" },
		limits = { trial_s = 1800 },
	},
	resources = {
		account = "bio",
		qos = "long",
		nodes = 1,
		gpus = "2",
		cpus_per_gpu = 16,
		mem_gib_per_gpu = 120,
		mail_type = "END,FAIL",
		mail_user = "someone@example.org",
		launcher = "script", -- it starts its ranks itself
	},
	objective = "throughput_steps_per_s",
	-- guards = { loss = 0.01 } as soon as the log's loss is read: without it nobody looks whether training
	-- still learns
	knobs = {
		knob("num_workers", { arg = "--workers", values = { 1, 2, 8 } }),
		OMP_NUM_THREADS = { 1, 2, 4 },
		"expandable_segments",
		"NCCL_BUFFSIZE",
		"NCCL_MIN_CTAS",
	},
	scheduler = "slurm",
	mode = "quick",
}
