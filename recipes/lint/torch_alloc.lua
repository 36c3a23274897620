-- SPDX-License-Identifier: MIT
-- PYTORCH_CUDA_ALLOC_CONF and its new name. It is read once, before the first allocation; a bad key ends the process at
-- the first use of CUDA.
local OLD <const>, NEW <const> = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"

local function truth(value)
	if value ~= "True" and value ~= "False" then
		local meant = truth_meant(value) or c_integer(value)
		return "booleans are the words True and False, nothing else", meant == 0 and "False" or "True"
	end
end

local function whole(least, most, power)
	return function(value)
		local v, ok = c_integer(value)
		if not ok then
			return "a whole number is wanted", size_meant(value) and tostring(size_meant(value)) or tostring(least)
		elseif v < least or v > most then
			return string.format("it must be from %d to %d", least, most), tostring(v < least and least or most)
		elseif power and v & (v - 1) ~= 0 then
			return "it must be a power of two", "4"
		end
	end
end

-- Each key: what is wrong with a value of it, and what is right.
local keys <const> = {
	max_split_size_mb = whole(20, 1 << 30),
	max_non_split_rounding_mb = whole(20, 1 << 30),
	expandable_segments = truth,
	pinned_use_cuda_host_register = truth,
	pinned_use_background_threads = truth,
	release_lock_on_cudamalloc = truth,
	release_lock_on_hipmalloc = truth,
	pinned_num_register_threads = whole(1, 128, true),
	pinned_reserve_segment_size_mb = whole(0, 1 << 30),
	graph_capture_record_stream_reuse = truth,
	throw_on_cudamalloc_oom = truth,
	per_process_memory_fraction = function() end,
	large_segment_size_mb = whole(1, 1 << 30),
	garbage_collection_threshold = function(value)
		local v = tonumber(value)
		if not v or v <= 0 or v >= 1 then
			return "it must be above 0 and below 1", "0.8"
		end
	end,
	roundup_power2_divisions = function(value)
		if value:sub(1, 1) ~= "[" then
			return whole(1, 1 << 20, true)(value)
		end
	end,
	backend = function(value)
		if value ~= "native" and value ~= "cudaMallocAsync" then
			return "it is native or cudaMallocAsync", value:lower():find("async") and "cudaMallocAsync" or "native"
		end
	end,
}

-- "a:1,b:[x:1,y:2]" -> { { key, value, text }, ... }
local function entries(text)
	local out, depth, from_here = {}, 0, 1
	for i = 1, #text + 1 do
		local c = text:sub(i, i)
		depth = depth + (c == "[" and 1 or c == "]" and -1 or 0)
		if (c == "," and depth == 0) or i > #text then
			local part = text:sub(from_here, i - 1)
			local key, value = part:match("^([^:=]*):(.*)$")
			out[#out + 1] = { key = key or part, value = value, text = part }
			from_here = i + 1
		end
	end
	return out
end

local function with(s, text, instead)
	local at, last = s.value:find(text, 1, true)
	return s.name .. "=" .. (at and s.value:sub(1, at - 1) .. instead .. s.value:sub(last + 1) or instead)
end

local function key_names()
	local out = {}
	for key in pairs(keys) do
		out[#out + 1] = key
	end
	return out
end

local function one(s, e)
	local plain = e.key:match("^%s*(.-)%s*$")
	if e.text == "" then
		return wrong("an empty entry between commas ends the process", with(s, ",,", ","))
	end
	local equals_key, equals_value = e.text:match("^([%w_]+)=(.*)$")
	if equals_key then
		return wrong("key and value are divided by a colon: this ends the process at the first use of CUDA",
			with(s, e.text, equals_key .. ":" .. equals_value))
	end
	if e.value == nil then
		return wrong(string.format('"%s" has no value: key:value is wanted', e.text), with(s, e.text, plain .. ":..."))
	end
	if e.key:find("%s") or e.value:find("%s") then
		return wrong("blanks are part of key and value: this ends the process at the first use of CUDA",
			with(s, e.text, plain .. ":" .. e.value:match("^%s*(.-)%s*$")))
	end
	local check = keys[plain]
	if not check then
		local near = nearest(plain:lower(), key_names())
		return wrong(string.format('"%s" is no key of the allocator: PyTorch ends at the first use of CUDA', plain),
			near and with(s, e.key .. ":", near .. ":") or "take it out")
	end
	local what, right = check(e.value)
	return what and wrong(string.format("%s:%s: %s; PyTorch ends at the first use of CUDA", plain, e.value, what),
		with(s, e.text, plain .. ":" .. right)) or nil
end

local function together(s, list, x)
	local has, out = {}, {}
	for _, e in ipairs(list) do
		if has[e.key] then
			out[#out + 1] = risky(e.key .. " stands there twice: the last one counts", "one of the two")
		end
		has[e.key] = e.value
	end
	if has.backend == "cudaMallocAsync" and #list > 1 then
		out[#out + 1] = risky("with backend cudaMallocAsync the other keys are ignored", s.name .. "=backend:cudaMallocAsync")
	end
	if has.max_non_split_rounding_mb and not has.max_split_size_mb then
		out[#out + 1] = mention("max_non_split_rounding_mb only counts beside max_split_size_mb", nil)
	end
	if has.pinned_num_register_threads and has.pinned_use_cuda_host_register ~= "True" then
		out[#out + 1] = wrong("pinned_num_register_threads only counts with pinned_use_cuda_host_register:True",
			s.name .. "=" .. s.value .. ",pinned_use_cuda_host_register:True")
	end
	if has.expandable_segments == "True" and (has.max_split_size_mb or has.garbage_collection_threshold)
		and before(x.torch, "2.5") then
		out[#out + 1] = wrong(string.format("PyTorch %s asserts when expandable_segments stands beside max_split_size_mb or "
			.. "garbage_collection_threshold (mended in 2.5)", x.torch), s.name .. "=expandable_segments:True")
	end
	return out
end

return rules {
	{ name = "alloc_conf", setting = function(s, x)
		if (s.name ~= OLD and s.name ~= NEW and s.name ~= "PYTORCH_HIP_ALLOC_CONF") or not s.value or s.dynamic
			or s.value == "" then
			return nil
		end
		local list, out = entries(s.value), {}
		for _, e in ipairs(list) do
			out[#out + 1] = one(s, e)
		end
		return out
	end },
	{ name = "alloc_conf_together", env = function(env, x)
		local out = {}
		for _, name in ipairs { OLD, NEW } do
			local s = env[name]
			for _, f in ipairs(s and value_of(env, name) and together(s, entries(s.value), x) or {}) do
				f.at = s
				out[#out + 1] = f
			end
		end
		return out
	end },
	{ name = "alloc_conf_name", env = function(env, x)
		local old, new = env[OLD], env[NEW]
		if old and new and old.value ~= new.value then
			return wrong(NEW .. " wins where PyTorch reads it (2.9 and newer), and older ones read this alone: which one "
				.. "holds depends on the version", "one of the two", old)
		end
		if new and before(x.torch, "2.9") then
			return wrong(string.format("PyTorch %s does not read this name: 2.9 is the first that does", x.torch),
				OLD .. "=" .. (new.value or ""), new)
		end
		if new and not old and (new.value or ""):find("expandable_segments") and from(x.torch, "2.9")
			and before(x.torch, "2.11") then
			return wrong("PyTorch 2.9 and 2.10 do not take expandable_segments from this name", OLD .. "=" .. new.value, new)
		end
		if new and not old and x.torch == nil then
			return mention("only PyTorch 2.9 and newer read this name", nil, new)
		end
	end },
}
