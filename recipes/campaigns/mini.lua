-- SPDX-License-Identifier: MIT
-- The demo without Python, in half a minute. Build the program, make the data, put the program into PATH:
--	make workloads
--	build/workloads/mini --make-data build/mini.data
--	PATH=$PWD/build/workloads:$PATH fettle run recipes/campaigns/mini.lua
return {
	name = "mini",
	question = "Do loader threads, BLAS threads or another malloc make the small perceptron faster?",

	workload = {
		command = { "mini", "--data", "build/mini.data", "--blas-threads", "1" },
		workdir = "../..",
		window = { warmup_steps = 20, steps = 200 },
		metrics = { file = true },
		limits = { trial_s = 30 },
	},

	objective = "throughput_samples_per_s",
	guards = {
		loss = { margin = 0.01, stat = "last" },
	},

	knobs = {
		{
			name = "loader_threads",
			summary = "threads that read and inflate ahead of the training thread",
			arg = "--loader-threads",
			class = "neutral",
			default = 0,
			values = { 1, 2 },
			proof = { level = "effective", metric = "tree_threads", expect = "up" },
			bottleneck = "storage",
		},
		{
			name = "blas_threads",
			summary = "threads of OpenBLAS",
			arg = "--blas-threads",
			class = "numerics",
			default = 1,
			values = { 2 },
			bottleneck = "compute",
		},
		MALLOC_ARENA_MAX = { 1 },
	},

	scheduler = "local",
	mode = "quick",
	rounds = 1,
	budget = { minutes = 5 },
	blocks = { aa = 3, final = 4, soak = 2 },
}
