-- Written by `fettle init srun.sbatch`; the script was read, not run. Recognised: no framework that
-- fettle knows.
-- Look it over, then: fettle check, fettle plan, fettle run.
-- srun.sbatch:1: the copy is run by bash, not by sh
-- srun.sbatch:12: --output=rank-%t.log is left out: the output is read by fettle
-- srun.sbatch:12: > train.log is left out: the output is read by fettle
-- srun.sbatch:13: 1 command after the launch is left out
return {
	name = "ranks",
	workload = {
		-- the lines of srun.sbatch up to its launch on line 12; the arguments here are given again behind its
		-- own, and the last one counts
		command = { "./srun.fettle.sh", "--num-workers", "0" },
		env = {
			PACE = "slow", -- line 9
			PYTHONUNBUFFERED = "1",
		},
		window = { warmup_steps = 20, steps = 100, pattern = "(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)" },
		-- name what your log says: (?<loss>\S+), (?<step_time_ms>\S+), (?<throughput_samples_per_s>\S+)
		metrics = { pattern = "(?i)\\b(?:step|iter(?:ation)?|batch)\\b\\D{0,3}(?<step>\\d+)" },
		limits = { trial_s = 1800 },
	},
	resources = {
		nodes = 2,
		tasks_per_node = 1,
		cpus_per_task = 1,
		launcher = "script", -- it starts its ranks itself
	},
	objective = "throughput_steps_per_s",
	-- guards = { loss = 0.01 } as soon as the log's loss is read: without it nobody looks whether training
	-- still learns
	knobs = {
		knob("num_workers", { arg = "--num-workers", values = { 1 } }),
		OMP_NUM_THREADS = { 1 },
		"MALLOC_ARENA_MAX",
	},
	scheduler = "slurm",
	mode = "quick",
}
