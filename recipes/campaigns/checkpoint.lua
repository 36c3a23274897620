-- SPDX-License-Identifier: MIT
-- What does saving cost, and how much of it can be hidden?
-- About five minutes on one GPU; runs on CPUs as well. Needs PyTorch; scheduler local.
-- A checkpoint every 20 steps, far too often on purpose: its cost a save is what is compared. Both ways write the
-- same file to the trial's own directory; the asynchronous one pays a copy to host memory and writes in a thread.
return {
	name = "checkpoint",
	question = "Does saving in the background make training faster, and by how much?",
	workload = workload("gpt", {
		command = {
			"python3", path("../workloads/gpt/train.py"), "--cached-batches", "75", "--save-every", "20",
		},
	}),
	objective = "throughput_samples_per_s",
	guards = {
		loss = { margin = 0.001, stat = "last" },
	},
	knobs = {
		knob("async_save", { arg = "--save-async", flag = true }),
	},
	mode = "quick",
	rounds = 1,
	warmup_trials = 0, -- every trial is a process of its own with 15 steps of warm-up
	budget = { minutes = 30 },
	blocks = { aa = 3, final = 3, soak = 3 },
}
