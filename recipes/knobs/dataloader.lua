-- SPDX-License-Identifier: MIT
-- torch.utils.data.DataLoader. The arguments are those of our demo; other scripts call them
-- otherwise: knob("num_workers", { arg = "--dataloader_num_workers" }) for the Hugging Face Trainer.

-- A loader that is waited for makes one batch in `load`; with n workers one every load / n. The
-- step then lasts as long as the slower of the two. With no worker the loader's time is the wait.
local function with_workers(n, s, current)
	local wait = s.data_wait_ratio
	if wait == nil then
		return { why = "the wait for data was not measured" }
	end
	local compute = 1 - wait
	local load = over(current, 0) and current or wait
	local step = math.max(compute, n > 0 and load / n or compute + load)
	local gain = 1 / step - 1
	return {
		gain = gain,
		ceiling = math.max(ceiling_of(wait), 0),
		worth_trying = over(wait, 0.01),
		why = string.format("a step waits %s of its time for data; %d workers would make it %s of what it is now",
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
			nanogpt = "not there is no DataLoader: batches come from a memory-mapped file",
			torchtune = "not stock recipes accept num_workers= and build the loader without it",
		},
		type = "int", min = 0, max = 256,
		default = 0,
		values = { 1, 2, 4, 8 },
		class = "neutral",
		proof = { level = "effective", metric = "tree_procs", expect = "change" },
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
			nanogpt = "not its batches are pinned in the script",
		},
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
}
