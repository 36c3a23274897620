-- SPDX-License-Identifier: MIT
-- Names and values of the other components: OpenMP, CUDA, PyTorch, allocators, libfabric.

-- Beginnings of names that belong to one component: what is near one of its names is a slip of it. `all`: our list is
-- complete, so what is in none is read by nobody.
local families <const> = {
	{ prefix = "TORCH_NCCL_" }, { prefix = "PYTORCH_" }, { prefix = "OMP_", all = true }, { prefix = "GOMP_" },
	{ prefix = "KMP_" }, { prefix = "MKL_" }, { prefix = "OPENBLAS_" }, { prefix = "NUMEXPR_" }, { prefix = "CUDA_" },
	{ prefix = "NVIDIA_" }, { prefix = "MALLOC_" }, { prefix = "FI_EFA_" }, { prefix = "OFI_NCCL_" },
	{ prefix = "TORCH_" }, { prefix = "TORCHINDUCTOR_" }, { prefix = "CUBLAS_" }, { prefix = "RDMAV_" },
	{ prefix = "TOKENIZERS_" }, { prefix = "GLOO_" },
}

local function assignment(name, s)
	return s.value and not s.dynamic and name .. "=" .. s.value or name
end

local function family_of(name)
	for _, family in ipairs(families) do
		if name:sub(1, #family.prefix) == family.prefix then
			return family
		end
	end
end

-- Two names that a slip makes of each other: one letter in eight, or the words in another order.
local function slip(a, b)
	return b ~= nil and (distance(a, b) <= math.max(1, #a // 8) or same_words(a, b))
end

local function all_names(known)
	local out = {}
	for name in pairs(known) do
		out[#out + 1] = name
	end
	return out
end

local function value_finding(s, entry)
	local text = s.value:match("^%s*(.-)%s*$")
	if entry.kind == "int" or entry.kind == "list" then
		for _, part in ipairs(entry.kind == "list" and parts(text, ",") or { text }) do
			local value, whole = c_integer(part)
			local meant = size_meant(part) or truth_meant(part)
			if not whole then
				return wrong(string.format('"%s" is no whole number: %s ignores it or takes only its beginning', s.value,
					entry.who), meant and string.format("%s=%d", s.name, meant) or s.name .. "=<a whole number>")
			elseif value < entry.least or value > entry.most then
				return wrong(string.format("%d is out of range: %s takes %d to %d here", value, entry.who, entry.least,
					entry.most), string.format("%s=%d", s.name, value < entry.least and entry.least or entry.most))
			end
		end
	elseif entry.kind == "words" then
		for _, word in ipairs(entry.words) do
			if word == text or (not entry.case and word:lower() == text:lower()) then
				return nil
			end
		end
		local meant = truth_meant(text)
		local right = nearest(text:upper(), entry.words) or nearest(text:lower(), entry.words)
		if meant and set_of(entry.words)["0"] then
			right = tostring(meant)
		elseif meant and set_of(entry.words)["true"] then
			right = meant == 1 and "true" or "false"
		elseif (text == "0" or text == "1") and set_of(entry.words)["true"] then
			right = text == "1" and "true" or "false"
		end
		return wrong(string.format('"%s" is none of %s%s', s.value, table.concat(entry.words, ", "),
			entry.case and ", which are compared byte by byte" or ""), s.name .. "=" .. (right or entry.words[1]))
	end
end

return rules {
	{ name = "env_name", setting = function(s, x)
		local known, name = x.facts.env, s.name
		if known[name] or name:sub(1, 5) == "NCCL_" or (s.value == nil and not s.dynamic) then
			return nil
		end
		if name ~= name:upper() then
			local upper = name:upper()
			local own = known[upper] and family_of(upper)
			return own and wrong("names are compared byte by byte: nothing reads " .. name, assignment(upper, s)) or nil
		end
		local family = family_of(name)
		local near = family and nearest_name(name, known, family.prefix)
		if near and slip(name, near) then
			return wrong(string.format("nothing that is known here reads %s; %s reads %s", name, known[near].who, near),
				assignment(near, s))
		elseif family and family.all then
			return wrong(string.format("no %s reads %s", "OpenMP", name), near and assignment(near, s) or "take it out")
		end
		near = #name >= 10 and nearest(name, all_names(known)) or nil
		if near and slip(name, near) then
			return (family_of(near) and wrong or risky)(string.format("nothing that is known here reads %s; %s reads %s", name,
				known[near].who, near), assignment(near, s))
		end
	end },
	{ name = "env_value", setting = function(s, x)
		local entry = x.facts.env[s.name]
		if entry and s.value and not s.dynamic and s.value ~= "" then
			return value_finding(s, entry)
		end
	end },
	{ name = "carriage_return", setting = function(s)
		if s.value and s.value:find("\r$") then
			return wrong("the value ends with a carriage return (the file has DOS line breaks): it is part of the value",
				"dos2unix the file")
		end
	end },
	{ name = "dos_line_breaks", all = function(x)
		return x.dos_file and wrong("the file has DOS line breaks: a shell makes a carriage return part of each value",
			"dos2unix " .. x.dos_file, { file = x.dos_file, line = 1 }) or nil
	end },
	{ name = "utf8_mark", all = function(x)
		return x.marked_file and wrong("the file begins with a mark of UTF-8 (BOM), which spoils its first name",
			"sed -i '1s/^\\xef\\xbb\\xbf//' " .. x.marked_file, { file = x.marked_file, line = 1 }) or nil
	end },
	{ name = "debug_left_on", setting = function(s)
		local value = s.value and not s.dynamic and s.value
		if s.name == "CUDA_LAUNCH_BLOCKING" and value == "1" then
			return risky("every kernel launch waits for its end: a setting to find faults with", "take it out")
		elseif s.name == "PYTORCH_NO_CUDA_MEMORY_CACHING" and value then
			return risky("every tensor is a cudaMalloc: a setting to find faults with", "take it out")
		elseif s.name == "TORCH_DISTRIBUTED_DEBUG" and value and value:upper() == "DETAIL" then
			return risky("DETAIL checks every collective among all ranks: do not time such a run",
				"TORCH_DISTRIBUTED_DEBUG=OFF")
		end
	end },
	{ name = "tf32_contradiction", env = function(env)
		if value_of(env, "NVIDIA_TF32_OVERRIDE") == "0" and value_of(env, "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE") == "1" then
			return wrong("NVIDIA_TF32_OVERRIDE=0 forbids TF32 in the libraries: this cannot switch it on", "one of the two",
				env.TORCH_ALLOW_TF32_CUBLAS_OVERRIDE)
		end
	end },
	{ name = "host_allocator", env = function(env)
		local preload = env.LD_PRELOAD and (env.LD_PRELOAD.value or "")
		local other = preload and (preload:find("jemalloc") or preload:find("tcmalloc") or preload:find("mimalloc"))
		local out = {}
		if env.MALLOC_CONF and not (preload and (preload:find("jemalloc") or env.LD_PRELOAD.dynamic)) then
			out[1] = risky("jemalloc alone reads it, and no LD_PRELOAD brings jemalloc in",
				"LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2 beside it", env.MALLOC_CONF)
		end
		if env.MALLOC_ARENA_MAX and other then
			out[#out + 1] = wrong("glibc's malloc alone reads it, and LD_PRELOAD puts another one in its place",
				"take it out", env.MALLOC_ARENA_MAX)
		end
		return out
	end },
	{ name = "openmp_affinity", env = function(env)
		if env.KMP_AFFINITY and env.OMP_PROC_BIND then
			return risky("KMP_AFFINITY wins over OMP_PROC_BIND and OMP_PLACES where both are read", "one of the two",
				env.OMP_PROC_BIND)
		elseif env.GOMP_CPU_AFFINITY and env.OMP_PROC_BIND then
			return risky("OMP_PROC_BIND wins over GOMP_CPU_AFFINITY", "one of the two", env.GOMP_CPU_AFFINITY)
		elseif env.OMP_PLACES and value_of(env, "OMP_PROC_BIND") and value_of(env, "OMP_PROC_BIND"):lower() == "false" then
			return wrong("OMP_PROC_BIND=false binds nothing: the places are not used", "OMP_PROC_BIND=close", env.OMP_PLACES)
		end
	end },
	{ name = "efa_old", setting = function(s)
		local old = {
			FI_EFA_USE_DEVICE_RDMA = "needed before libfabric 1.18 and aws-ofi-nccl 1.7 only; 1 ends the job on devices "
				.. "without RDMA",
			FI_PROVIDER = "needed for aws-ofi-nccl 1.5.0 and older only: newer ones choose efa themselves",
			FI_EFA_FORK_SAFE = "the plugin sets it itself",
			FI_EFA_ENABLE_SHM_TRANSFER = "the plugin switches it off whatever it says",
		}
		if s.name == "RDMAV_FORK_SAFE" and s.value then
			return risky("AWS: not to be used; it can break newer kernels", "take it out")
		end
		return old[s.name] and s.value and mention(old[s.name], "take it out") or nil
	end },
}
