-- SPDX-License-Identifier: MIT
-- PyTorch's caching allocator on the device: keys of PYTORCH_CUDA_ALLOC_CONF, which every version of
-- torch reads. The new name PYTORCH_ALLOC_CONF (2.9 and later) wins when both are set, and 2.9 and
-- 2.10 ignore expandable_segments in it: use it with knob(..., { env = "PYTORCH_ALLOC_CONF" }).
-- Read once, at the first use of the device; an unknown key ends the process there. On a machine
-- without a GPU nothing reads it.
local FRAGMENTED <const> = 0.20 -- as in rules/default.lua

local function fragmentation(s)
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
	t.subkey = t.name
	t.class = "neutral"
	t.proof = "delivered"
	t.bottleneck = "memory"
	t.expect = expect
	return t
end

return {
	key {
		name = "max_split_size_mb",
		summary = "do not split cached blocks larger than this (MB)",
		type = "int", min = 20,
		values = { 64, 128, 256, 512 },
		risk = "large blocks that are not split cannot serve small requests: more memory may be held",
		notes = "torch's own advice is to use it last, against out-of-memory with many inactive split blocks; below 20 "
			.. "is an error; it has no effect with backend:cudaMallocAsync",
	},
	key {
		name = "expandable_segments",
		summary = "grow segments by mapping memory instead of adding new ones",
		one_of = { "True", "False" },
		values = { "True" },
		risk = "breaks legacy CUDA IPC (custom all-reduce, CUDA tensors through torch.multiprocessing)",
		notes = "exactly True or False; a build or driver without it warns 'expandable_segments not supported on this "
			.. "platform' and goes on; before 2.5 it failed together with max_split_size_mb or the threshold",
	},
	key {
		name = "garbage_collection_threshold",
		summary = "give old unused blocks back above this share of the memory",
		type = "number", min = 0.01, max = 0.99,
		values = { 0.6, 0.8 },
		risk = "blocks that are given back too early must be asked for again, with a synchronisation",
		notes = "0 and 1 themselves are not allowed; only the native backend has it",
	},
	key {
		name = "roundup_power2_divisions",
		summary = "round sizes up to this many steps between powers of two, so that blocks fit again",
		one_of = { "1", "2", "4", "8", "16", "32" },
		values = { 4, 8 },
		risk = "rounding wastes memory: up to half of a block with 1 division",
		notes = "a power of two; for shapes that vary from step to step",
	},
}
