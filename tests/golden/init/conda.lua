-- Written by `fettle init conda.sbatch`; the script was read, not run. Recognised: no framework that
-- fettle knows.
-- Look it over, then: fettle check, fettle plan, fettle run.
-- conda.sbatch:21: every trial writes "$OUT/run.json"
-- conda.sbatch:25: Slurm does not read this line: it stops at the first command; move it up: #SBATCH
-- --mem=4G
-- conda.sbatch:27: 1 command after the launch is left out
return {
	name = "cnn",
	workload = {
		-- the lines of conda.sbatch up to its launch on line 26; the arguments here are given again behind its
		-- own, and the last one counts
		command = { "./conda.fettle.sh", "--num-workers", "0" },
		env = {
			MKL_NUM_THREADS = "1", -- line 17
			OMP_NUM_THREADS = "1", -- line 16
			PYTHONUNBUFFERED = "1",
		},
		window = { warmup_steps = 20, steps = 100, pattern = "(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)" },
		-- name what your log says: (?<loss>\S+), (?<step_time_ms>\S+), (?<throughput_samples_per_s>\S+)
		metrics = { pattern = "(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)" },
		limits = { trial_s = 1800 },
	},
	resources = {
		nodes = 1,
		cpus_per_task = 2,
		tasks_per_node = 1,
		launcher = "script", -- it starts its ranks itself
	},
	objective = "throughput_steps_per_s",
	-- guards = { loss = 0.01 } as soon as the log's loss is read: without it nobody looks whether training
	-- still learns
	knobs = {
		knob("num_workers", { arg = "--num-workers", values = { 1, 2 } }),
		OMP_NUM_THREADS = { 2 },
		"MALLOC_ARENA_MAX",
	},
	scheduler = "slurm",
	mode = "quick",
}
