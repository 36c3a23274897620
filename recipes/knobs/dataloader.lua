-- SPDX-License-Identifier: MIT
-- torch.utils.data.DataLoader. The arguments are those of our demo; with workload.framework they are the
-- framework's, and knob("num_workers", { arg = "--your-name" }) says any other.
local NO_LOADER <const> = "not there is no DataLoader: batches come from a memory-mapped file"
local NOT_WIRED <const> = "not stock recipes accept any key and build the loader without it"
local IN_CODE <const> = "code pass it to deepspeed_io, or to your own DataLoader"

-- A loader that is waited for makes one batch in `load`; with n workers one every load / n. The
-- step then lasts as long as the slower of the two. With no worker the loader's time is the wait. Workers that keep
-- up may need any less than that: then how much is not known, and fewer only help where they lack CPUs.
local KEEPS_UP <const> = 0.05 -- of the step; ours

local function fewer(n, s, current)
	local crowded = over(s.rank_ready_ratio, 0.05) or over(s.loader_ready_ratio, 0.05)
	return {
		ceiling = not crowded and 0 or nil,
		worth_trying = crowded,
		why = crowded and "processes wait for a CPU: fewer workers leave them more"
			or string.format("%d workers keep up (a step waits %s of its time): %d could not do more", current,
				percent(s.data_wait_ratio), n),
	}
end

local function with_workers(n, s, current)
	local wait = s.data_wait_ratio
	if wait == nil then
		return { why = "the wait for data was not measured" }
	end
	if over(current, n) and not over(wait, KEEPS_UP) then
		return fewer(n, s, current)
	end
	local compute = 1 - wait
	local load = over(current, 0) and current or wait
	local step = math.max(compute, n > 0 and load / n or compute + load)
	local gain = 1 / step - 1
	return {
		gain = gain,
		ceiling = math.max(ceiling_of(wait), 0),
		worth_trying = over(wait, 0.01),
		why = string.format("a step waits %s of its time for data; with %d workers it would last %s of what it does now",
			percent(wait), n, percent(step)),
	}
end

return {
	{
		name = "num_workers",
		summary = "processes per rank that load and decode samples",
		arg = "--num-workers",
		passed = {
			hf_trainer = "--dataloader_num_workers",
			lightning = "--data.num_workers",
			megatron = "--num-workers",
			nanogpt = NO_LOADER,
			torchtune = NOT_WIRED,
			deepspeed = "code initialize(training_data=...) takes twice the devices of the node unless "
				.. "num_local_io_workers is given",
			script = "DataLoader(num_workers=...)",
		},
		type = "int", min = 0, max = 256,
		default = 0,
		values = { 1, 2, 4, 8 },
		class = "neutral",
		proof = { level = "effective", metric = "tree_procs", expect = "change" },
		defaults = { megatron = 2 },
		documented = "user",
		applies = "map-style and iterable data sets",
		safe = "1 to the CPUs of a rank less one",
		when = "the step waits for its batch",
		evidence = "processes named pt_data_worker under each rank; data_wait_ratio",
		mistakes = {
			"it counts per rank: 8 on a node of 8 GPUs are 64 processes",
			"srun of Slurm 22.05 to 23.02 does not inherit -c from sbatch: all workers on one CPU",
			"torchtune takes num_workers=8 and ignores it",
		},
		bottleneck = "storage",
		expect = with_workers,
		lint = function(value, s)
			local cpus = cpus_per_rank(s)
			if over(cpus, 0) and value > cpus then
				return string.format("%d workers on %g CPUs per rank: they would take turns", value, cpus)
			end
		end,
		risk = "memory: each worker copies what the data set keeps; too little /dev/shm ends in a bus error",
		notes = "it counts per rank, not per node; an IterableDataset gives another order of samples with another "
			.. "number; scripts that build the loader themselves may accept the argument and ignore it",
	},
	{
		name = "prefetch_factor",
		summary = "batches that each worker has ready in advance",
		arg = "--prefetch-factor",
		passed = {
			hf_trainer = "--dataloader_prefetch_factor",
			lightning = "--data.prefetch_factor",
			megatron = "not it has no such argument",
			nanogpt = NO_LOADER, torchtune = NOT_WIRED, deepspeed = IN_CODE,
			script = "DataLoader(prefetch_factor=...)",
		},
		documented = "user",
		applies = "loaders with workers",
		safe = "2 to 8",
		when = "the wait for data comes in bursts: batches are unequal, or storage is uneven",
		mistakes = {
			"without workers it is a ValueError: an arm that fails, not one that is slow",
			"0 passes the constructor and fails at the first batch",
			"the Trainer knows it from transformers 4.38 on",
		},
		type = "int", min = 1, max = 64,
		default = 2,
		values = { 4, 8 },
		class = "neutral",
		proof = "delivered",
		requires = { knob = "num_workers", above = 0 },
		bottleneck = "storage",
		expect = relieves("data_wait_ratio", "waiting for data"),
		risk = "memory: workers x prefetch_factor batches wait in shared memory, pinned if pin_memory is on",
		notes = "torch takes 2 by itself when there are workers, and refuses the argument without them; it evens "
			.. "out unequal batches, but a loader that is too slow on average stays too slow",
	},
	{
		name = "pin_memory",
		summary = "batches in page-locked memory, for faster copies to the device",
		arg = "--pin-memory",
		flag = true,
		passed = {
			hf_trainer = "--dataloader_pin_memory True/False",
			lightning = "--data.pin_memory true/false",
			megatron = "not its loaders always pin",
			nanogpt = "not its batches are pinned in the script", torchtune = NOT_WIRED, deepspeed = IN_CODE,
			script = "DataLoader(pin_memory=True)",
		},
		documented = "user",
		applies = "copies to a GPU",
		safe = "both",
		when = "copies from pageable memory show in a profile (h2d_pageable_ratio)",
		evidence = "'Memcpy HtoD (Pinned -> Device)' in a trace (metric h2d_pinned_ratio)",
		mistakes = { "without non_blocking=True in the copy it gains little" },
		default = false,
		defaults = { hf_trainer = true },
		values = { true, false },
		class = "neutral",
		proof = "delivered",
		bottleneck = "storage",
		expect = function(_, s)
			if s.gpus_per_node == 0 then
				return { gain = 0, why = "there is no GPU that batches are copied to: nothing should change" }
			end
			return { why = "helps where copies to the device are on the critical path" }
		end,
		risk = "page-locked memory cannot be swapped: too much of it starves the rest of the node",
		notes = "useful only with non_blocking=True copies; without an accelerator torch warns and ignores it; "
			.. "batches of a type of your own need a pin_memory() method",
	},
	{
		name = "persistent_workers",
		summary = "keep the workers from one epoch to the next",
		arg = "--persistent-workers",
		flag = true,
		passed = {
			hf_trainer = "--dataloader_persistent_workers True/False",
			lightning = "--data.persistent_workers true/false",
			megatron = "not it keeps its workers",
			nanogpt = NO_LOADER, torchtune = NOT_WIRED, deepspeed = IN_CODE,
			script = "DataLoader(persistent_workers=True)",
		},
		documented = "user",
		applies = "loaders with workers, more than one epoch",
		safe = "both",
		when = "each epoch begins with a stall",
		mistakes = { "without workers it is a ValueError", "a window inside of one epoch cannot show it" },
		default = false,
		values = { true },
		class = "neutral",
		proof = "delivered",
		requires = { knob = "num_workers", above = 0 },
		bottleneck = "storage",
		expect = relieves("data_wait_ratio", "waiting for data"),
		risk = "memory that workers have gathered is not given back between epochs",
		notes = "it only matters at the border of two epochs: a window inside one epoch shows nothing; ValueError "
			.. "without workers",
	},
	{
		name = "in_order",
		summary = "batches in the order of the sampler, or as they are ready",
		passed = {
			lightning = "--data.in_order true/false",
			hf_trainer = "not the Trainer builds its loaders without it",
			megatron = "not its loaders keep the order",
			nanogpt = NO_LOADER, torchtune = NOT_WIRED, deepspeed = IN_CODE,
			script = "DataLoader(in_order=False)",
		},
		type = "bool",
		default = true, values = { false },
		class = "optimisation", -- which samples make a batch stays; their order does not
		proof = "delivered",
		requires = { knob = "num_workers", above = 0 },
		documented = "user",
		applies = "loaders with workers",
		safe = "true",
		when = "single samples take long and hold up batches that are ready",
		bottleneck = "storage",
		expect = relieves("data_wait_ratio", "waiting for data"),
		risk = "slow samples come late, always: the data is skewed, and runs cannot be repeated",
		mistakes = { "the loss of such a run compares badly with that of the baseline" },
		notes = "watch the loss at equal samples",
	},
	{
		name = "multiprocessing_context",
		summary = "how workers are started",
		passed = {
			lightning = "--data.multiprocessing_context",
			hf_trainer = "not the Trainer builds its loaders without it",
			megatron = "not it has no such argument",
			nanogpt = NO_LOADER, torchtune = NOT_WIRED, deepspeed = IN_CODE,
			script = "DataLoader(multiprocessing_context='forkserver')",
		},
		one_of = { "fork", "forkserver", "spawn" },
		values = { "forkserver", "spawn" },
		class = "neutral",
		proof = "delivered",
		requires = { knob = "num_workers", above = 0 },
		documented = "user",
		applies = "loaders with workers",
		safe = "all three, if the data set can be pickled",
		when = "workers hang after a fork, or memory of the parent is copied",
		bottleneck = "host",
		expect = told("it mends hangs and copies of memory; starting is slower"),
		risk = "seconds at the start of each epoch without persistent workers",
		mistakes = { "a data set that cannot be pickled fails at the first batch" },
		notes = "fork is the default up to Python 3.13, forkserver from 3.14 on",
	},
}
