-- SPDX-License-Identifier: MIT
-- PyTorch's caching allocator on the device: keys of PYTORCH_CUDA_ALLOC_CONF, which every version of
-- torch reads. The new name PYTORCH_ALLOC_CONF (2.9 and later) wins when both are set, and 2.9 and
-- 2.10 ignore expandable_segments in it: use it with knob(..., { env = "PYTORCH_ALLOC_CONF" }).
-- Read once, at the first use of the device; an unknown key ends the process there. On a machine
-- without a GPU nothing reads it.
local FRAGMENTED <const> = 0.20 -- as in rules/default.lua

local function fragmentation(s)
	if s.mem_fragmentation_ratio then
		return s.mem_fragmentation_ratio
	end
	if over(s.mem_reserved_gib, 0) and s.mem_allocated_gib then
		return 1 - s.mem_allocated_gib / s.mem_reserved_gib
	end
end

local function expect(_, s)
	local lost = fragmentation(s)
	if s.gpus_per_node == 0 then
		return { gain = 0, why = "there is no GPU whose memory it manages: nothing should change" }
	end
	if over(s.alloc_retries, 0) then
		return { why = string.format("the allocator retried %.0f times in the window, a flush each time", s.alloc_retries) }
	end
	if lost == nil then
		return { why = "the allocator's memory was not measured" }
	end
	return {
		worth_trying = lost > FRAGMENTED,
		why = string.format("%s of the memory that the allocator holds is not in use", percent(lost)),
	}
end

local function key(t)
	t.env = "PYTORCH_CUDA_ALLOC_CONF"
	t.subkey = t.subkey or t.name
	t.class = "neutral"
	t.proof = "delivered"
	t.excludes = { "PYTORCH_ALLOC_CONF" }
	t.documented = "user"
	t.applies = t.applies or "GPUs, the native backend"
	t.bottleneck = t.bottleneck or "memory"
	t.expect = t.expect or expect
	t.evidence = t.evidence or "torch.cuda.memory._snapshot()['allocator_settings'] says what was taken"
	return t
end

-- Page-locked memory, which batches are copied from.
local pinned <const> = on_gpus(relieves("data_wait_ratio", "waiting for data"))

return {
	key {
		name = "max_split_size_mb",
		summary = "do not split cached blocks larger than this (MB)",
		type = "int", min = 20,
		values = { 64, 128, 256, 512 },
		since = "torch 1.10",
		idle = { "backend=cudaMallocAsync" },
		safe = "20 and more",
		when = "out of memory with many inactive split blocks, after expandable_segments",
		mistakes = { "a blank behind the comma, or an unknown word, ends the process when it first uses the GPU" },
		risk = "large blocks that are not split cannot serve small requests: more memory may be held",
		notes = "torch's own advice is to use it last, against out-of-memory with many inactive split blocks; below 20 "
			.. "is an error; it has no effect with backend:cudaMallocAsync",
	},
	key {
		name = "expandable_segments",
		summary = "grow segments by mapping memory instead of adding new ones",
		one_of = { "True", "False" },
		values = { "True" },
		since = "torch 2.0",
		default = "False",
		idle = { "backend=cudaMallocAsync" },
		safe = "True from 2.5 on",
		when = "memory is fragmented, or batches vary in length",
		mistakes = {
			"true and 1 are errors: True",
			"in PYTORCH_ALLOC_CONF 2.9 and 2.10 ignore it without a word",
			"torchtitan's run_train.sh sets the variable itself: what the job says is lost",
		},
		risk = "breaks legacy CUDA IPC (custom all-reduce, CUDA tensors through torch.multiprocessing)",
		notes = "exactly True or False; a build or driver without it warns 'expandable_segments not supported on this "
			.. "platform' and goes on; before 2.5 it failed together with max_split_size_mb or the threshold",
	},
	key {
		name = "garbage_collection_threshold",
		summary = "give old unused blocks back above this share of the memory",
		type = "number", min = 0.01, max = 0.99,
		values = { 0.6, 0.8 },
		since = "torch 1.12",
		idle = { "backend=cudaMallocAsync" },
		safe = "0.6 to 0.9",
		when = "the allocator retries in steady state",
		risk = "blocks that are given back too early must be asked for again, with a synchronisation",
		notes = "0 and 1 themselves are not allowed; only the native backend has it",
	},
	key {
		name = "roundup_power2_divisions",
		summary = "round sizes up to this many steps between powers of two, so that blocks fit again",
		one_of = { "1", "2", "4", "8", "16", "32" },
		values = { 4, 8 },
		since = "torch 1.12",
		idle = { "backend=cudaMallocAsync" },
		safe = "4 to 16",
		when = "sizes vary from step to step",
		mistakes = { "other numbers than powers of two end the process" },
		risk = "rounding wastes memory: up to half of a block with 1 division",
		notes = "a power of two; for shapes that vary from step to step",
	},
	key {
		name = "max_non_split_rounding_mb",
		summary = "how much larger than asked for a whole block may be that is taken again (MB)",
		type = "int", min = 20,
		values = { 512, 1024 },
		since = "torch 2.5",
		idle = { "backend=cudaMallocAsync" },
		applies = "GPUs, the native backend, with max_split_size_mb",
		safe = "20 and more",
		when = "the allocator retries although large blocks are free",
		risk = "memory that a smaller request holds back",
		mistakes = { "without max_split_size_mb it does nothing" },
		notes = "20 by default",
	},
	key {
		name = "backend",
		summary = "whose allocator: PyTorch's own, or the driver's",
		one_of = { "native", "cudaMallocAsync" },
		default = "native", values = { "cudaMallocAsync" },
		since = "torch 1.13",
		applies = "GPUs",
		safe = "native",
		when = "memory is fragmented beyond what the other keys mend",
		evidence = "torch.cuda.get_allocator_backend()",
		risk = "medium: another allocator, with figures of its own",
		mistakes = {
			"figures of memory are not comparable between the two: no guard on them here",
			"the other keys of the list are ignored with a warning",
		},
		notes = "fixed when the process starts; the driver gives memory back by itself",
	},
	key {
		name = "pinned_use_cuda_host_register",
		summary = "page-locked memory by registering pages, not by allocating them",
		one_of = { "True", "False" },
		default = "False", values = { "True" },
		since = "torch 2.1",
		bottleneck = "storage",
		applies = "page-locked batches",
		safe = "both",
		when = "page-locked memory is allocated again and again",
		expect = pinned,
		risk = "low",
		notes = "seen in the host's time for pinned allocations alone",
	},
	key {
		name = "pinned_num_register_threads",
		summary = "threads that map the pages",
		one_of = { "1", "2", "4", "8", "16", "32", "64", "128" },
		default = "1", values = { 8 },
		requires = { knob = "pinned_use_cuda_host_register", values = { "True" } },
		since = "torch 2.1",
		bottleneck = "storage",
		applies = "page-locked batches",
		safe = "up to the CPUs of a rank",
		when = "as pinned_use_cuda_host_register, for large buffers",
		expect = pinned,
		risk = "low; CPU time at the start",
		mistakes = { "no power of two, or above 128: the process ends" },
		notes = "only together with pinned_use_cuda_host_register",
	},
	key {
		name = "pinned_use_background_threads",
		summary = "page-locked memory is given back by a thread of its own",
		one_of = { "True", "False" },
		default = "False", values = { "True" },
		since = "torch 2.5",
		bottleneck = "storage",
		applies = "page-locked batches",
		safe = "both",
		when = "the host is late and batches are page-locked",
		expect = pinned,
		risk = "low",
		notes = "one thread more a process",
	},
	key {
		name = "release_lock_on_cudamalloc",
		summary = "other threads may allocate while one waits in cudaMalloc",
		one_of = { "True", "False" },
		default = "False", values = { "True" },
		since = "torch 2.0",
		bottleneck = "host",
		safe = "both",
		when = "several threads allocate, and cudaMalloc shows in the profile",
		expect = on_gpus(relieves("alloc_gap_ratio", "the device waiting for cudaMalloc")),
		risk = "low",
		notes = "nothing where one thread alone allocates",
	},
	{
		name = "PYTORCH_NO_CUDA_MEMORY_CACHING",
		summary = "no caching of device memory at all",
		env = "PYTORCH_NO_CUDA_MEMORY_CACHING",
		one_of = { "1" },
		class = "neutral",
		proof = "delivered",
		documented = "debug",
		bottleneck = "memory",
		applies = "GPUs",
		safe = "unset",
		when = "never where time counts: to find a wrong access with a memory checker",
		expect = function()
			return { worth_trying = false, why = "each tensor asks the driver, with a synchronisation: it can only be slower" }
		end,
		risk = "high: many times slower",
		mistakes = { "left over from a debugging session" },
		notes = "give the value yourself, to see what the cache is worth",
	},
}
