-- Written by `fettle init array.sbatch`; the script was read, not run. Recognised: no framework that
-- fettle knows.
-- Look it over, then: fettle check, fettle plan, fettle run.
-- array.sbatch:3: --array=0-3%2: trials run the task with index 0 of the array; --array-index takes
-- another
-- array.sbatch:4: --ntasks=1 without --nodes: on one node
return {
	name = "sweep",
	workload = {
		-- the lines of array.sbatch up to its launch on line 14; the arguments here are given again behind its
		-- own, and the last one counts
		command = { "./array.fettle.sh", "--num-workers", "0" },
		env = {
			OMP_NUM_THREADS = "2", -- line 12
			PYTHONUNBUFFERED = "1",
		},
		window = { warmup_steps = 20, steps = 100, pattern = "(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)" },
		-- name what your log says: (?<loss>\S+), (?<step_time_ms>\S+), (?<throughput_samples_per_s>\S+)
		metrics = { pattern = "(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)" },
		limits = { trial_s = 1800 },
	},
	resources = {
		cpus_per_task = 2,
		tasks_per_node = 1,
		launcher = "script", -- it starts its ranks itself
	},
	objective = "throughput_steps_per_s",
	-- guards = { loss = 0.01 } as soon as the log's loss is read: without it nobody looks whether training
	-- still learns
	knobs = {
		knob("num_workers", { arg = "--num-workers", values = { 1, 2 } }),
		OMP_NUM_THREADS = { 1 },
		"MALLOC_ARENA_MAX",
	},
	scheduler = "slurm",
	mode = "quick",
}
