-- SPDX-License-Identifier: MIT
-- Settings of NCCL that cannot apply where the job runs, and settings that take each other's effect away.

local function number(env, name)
	local value = value_of(env, name)
	return value and c_integer(value) or nil
end

local function is(env, name, value)
	return number(env, name) == value
end

-- The network that the settings or the context name: "IB", "Socket", "plugin"; nil when nobody says.
local function network(env, x)
	local net = value_of(env, "NCCL_NET")
	if net then
		return net:upper() == "IB" and "IB" or net:lower() == "socket" and "Socket" or "plugin"
	end
	if is(env, "NCCL_IB_DISABLE", 1) and not env.NCCL_NET_PLUGIN then
		return "Socket"
	end
	return ({ ib = "IB", roce = "IB", socket = "Socket", efa = "plugin", plugin = "plugin" })[x.transport]
end

-- Only where ranks of several nodes talk to each other.
local function between_nodes(name)
	return name:find("^NCCL_IB_") or name:find("^NCCL_SOCKET_N") or name == "NCCL_NSOCKS_PERTHREAD"
		or name:find("^NCCL_NET_") and name ~= "NCCL_NET_PLUGIN" or name == "NCCL_CROSS_NIC" or name:find("^NCCL_COLLNET_")
		or name == "NCCL_PXN_DISABLE" or name == "NCCL_P2P_PXN_LEVEL" or name == "NCCL_P2P_NET_CHUNKSIZE"
end

-- Which network a name belongs to.
local function belongs(name)
	if name:find("^NCCL_IB_") and name ~= "NCCL_IB_DISABLE" then
		return "IB"
	elseif name == "NCCL_SOCKET_NTHREADS" or name == "NCCL_NSOCKS_PERTHREAD" then
		return "Socket"
	end
end

local function has_token(env, name, token)
	local value = value_of(env, name)
	if not value then
		return false
	end
	for _, clause in ipairs(parts(value:lower(), ";")) do
		local list = clause:match(":(.*)$") or clause
		if list:sub(1, 1) ~= "^" and set_of(parts(list, ","))[token] then
			return true
		end
	end
	return false
end

local function contradictions(env, x)
	local out = {}
	local function say(f)
		out[#out + 1] = f
	end
	local net = env.NCCL_NET
	if is(env, "NCCL_IB_DISABLE", 1) and net and (value_of(env, "NCCL_NET") or ""):upper() == "IB" then
		say(wrong("NCCL_IB_DISABLE=1 takes away the network that NCCL_NET=IB insists on: init fails", "one of the two", net))
	end
	if is(env, "NCCL_P2P_DISABLE", 1) and env.NCCL_P2P_LEVEL then
		say(wrong("NCCL_P2P_DISABLE=1 wins: the level has no effect", "one of the two", env.NCCL_P2P_LEVEL))
	end
	local least = number(env, "NCCL_MIN_CTAS") or number(env, "NCCL_MIN_NCHANNELS")
	local most = number(env, "NCCL_MAX_CTAS") or number(env, "NCCL_MAX_NCHANNELS")
	if least and most and least > most then
		say(wrong(string.format("the least (%d) is above the most (%d): NCCL lowers it to that", least, most),
			"a least that is not above the most", env.NCCL_MIN_CTAS or env.NCCL_MIN_NCHANNELS))
	end
	if env.NCCL_MIN_CTAS and env.NCCL_MIN_NCHANNELS and not before(x.nccl, "2.17.0")
		and number(env, "NCCL_MIN_CTAS") ~= number(env, "NCCL_MIN_NCHANNELS") then
		say(risky("two names of one bound: the higher of NCCL_MIN_CTAS and NCCL_MIN_NCHANNELS wins", "NCCL_MIN_CTAS alone",
			env.NCCL_MIN_NCHANNELS))
	end
	if env.NCCL_MAX_CTAS and env.NCCL_MAX_NCHANNELS and not before(x.nccl, "2.17.0")
		and number(env, "NCCL_MAX_CTAS") ~= number(env, "NCCL_MAX_NCHANNELS") then
		say(risky("two names of one bound: the lower of NCCL_MAX_CTAS and NCCL_MAX_NCHANNELS wins", "NCCL_MAX_CTAS alone",
			env.NCCL_MAX_NCHANNELS))
	end
	if is(env, "NCCL_IB_SPLIT_DATA_ON_QPS", 1) and (number(env, "NCCL_IB_QPS_PER_CONNECTION") or 1) <= 1 then
		say(wrong("there is one queue pair a connection, so nothing can be split over several",
			"NCCL_IB_QPS_PER_CONNECTION=4 beside it", env.NCCL_IB_SPLIT_DATA_ON_QPS))
	end
	local threads, sockets = number(env, "NCCL_SOCKET_NTHREADS"), number(env, "NCCL_NSOCKS_PERTHREAD")
	if threads and sockets and threads * sockets > 64 then
		say(wrong(string.format("%d threads x %d sockets are more than the 64 that NCCL opens: it clamps them", threads,
			sockets), "a product of at most 64", env.NCCL_NSOCKS_PERTHREAD))
	end
	for _, token in ipairs { "collnetdirect", "collnetchain", "collnet" } do
		if has_token(env, "NCCL_ALGO", token) and not is(env, "NCCL_COLLNET_ENABLE", 1) then
			say(wrong("CollNet is off unless NCCL_COLLNET_ENABLE=1: the algorithm is not there",
				"NCCL_COLLNET_ENABLE=1 beside it", env.NCCL_ALGO))
			break
		end
	end
	local nvls = has_token(env, "NCCL_ALGO", "nvls") or has_token(env, "NCCL_ALGO", "nvlstree")
	if nvls and is(env, "NCCL_NVLS_ENABLE", 0) then
		say(wrong("NCCL_NVLS_ENABLE=0 takes away the algorithm that NCCL_ALGO asks for", "one of the two", env.NCCL_ALGO))
	end
	if is(env, "NCCL_CUMEM_ENABLE", 0) and (nvls or is(env, "NCCL_NVLS_ENABLE", 1) or is(env, "NCCL_MNNVL_ENABLE", 1)) then
		say(wrong("NVLS and multi-node NVLink need cuMem, which NCCL_CUMEM_ENABLE=0 switches off", "NCCL_CUMEM_ENABLE unset",
			env.NCCL_CUMEM_ENABLE))
	end
	if has_token(env, "NCCL_ALGO", "nvlstree") and x.nodes == 1 then
		say(wrong("NVLSTree is for two nodes and more, and this is one", "NCCL_ALGO=allreduce:nvls", env.NCCL_ALGO))
	end
	if has_token(env, "NCCL_ALGO", "pat") and is(env, "NCCL_PAT_ENABLE", 0) then
		say(wrong("NCCL_PAT_ENABLE=0 takes away the algorithm that NCCL_ALGO asks for", "one of the two", env.NCCL_ALGO))
	end
	local chunk, buffer = number(env, "NCCL_P2P_NET_CHUNKSIZE"), number(env, "NCCL_BUFFSIZE") or 4194304
	if chunk and chunk > buffer // 8 then
		say(wrong(string.format("it is capped at an eighth of NCCL_BUFFSIZE (%d): %d has the effect of %d", buffer, chunk,
			buffer // 8), string.format("NCCL_P2P_NET_CHUNKSIZE=%d", buffer // 8), env.NCCL_P2P_NET_CHUNKSIZE))
	end
	local routed = number(env, "NCCL_IB_AR_THRESHOLD")
	if routed and routed > buffer then
		say(wrong(string.format("no message is larger than NCCL_BUFFSIZE (%d): adaptive routing is off", buffer),
			"NCCL_IB_AR_THRESHOLD=8192", env.NCCL_IB_AR_THRESHOLD))
	end
	if (value_of(env, "NCCL_CTA_POLICY") or ""):find("EFFICIENCY") and (env.NCCL_ALGO or env.NCCL_PROTO) then
		say(wrong("EFFICIENCY is skipped when NCCL_ALGO or NCCL_PROTO is set", "one of the two", env.NCCL_CTA_POLICY))
	end
	local debug = value_of(env, "NCCL_DEBUG")
	local logs = env.NCCL_DEBUG and (debug == nil or debug:upper() == "INFO" or debug:upper() == "TRACE")
	for _, name in ipairs { "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE" } do
		if env[name] and not (name == "NCCL_DEBUG_FILE" and env.NCCL_DEBUG) and not logs then
			say(risky(name .. " has no effect without NCCL_DEBUG=" .. (name == "NCCL_DEBUG_FILE" and "WARN or INFO" or "INFO"),
				"NCCL_DEBUG=INFO beside it, or take it out", env[name]))
		end
	end
	return out
end

return rules {
	{ name = "nccl_cpu_job", setting = function(s, x)
		if x.gpus_per_node == 0 and x.facts.nccl[s.name] and s.layer ~= "nccl.conf" and not s.name:find("^NCCL_DEBUG") then
			return (s.layer == "knob" and wrong or risky)("the job asks for no GPU, and NCCL works on GPUs alone: nothing reads "
				.. "this (gloo and MPI have settings of their own)", "take it out")
		end
	end },
	{ name = "nccl_one_node", setting = function(s, x)
		if x.nodes == 1 and x.facts.nccl[s.name] and between_nodes(s.name) and s.layer ~= "nccl.conf" then
			return (s.layer == "knob" and wrong or mention)("the job has one node: its ranks do not use the network that "
				.. "this is about", "take it out, or test it on two nodes")
		end
	end },
	{ name = "nccl_other_network", env = function(env, x)
		local net, out = network(env, x), {}
		for name, s in pairs(net and x.nodes ~= 1 and env or {}) do
			local own = belongs(name)
			if own and own ~= net and x.facts.nccl[name] then
				local why = value_of(env, "NCCL_NET") and "NCCL_NET=" .. env.NCCL_NET.value
					or is(env, "NCCL_IB_DISABLE", 1) and "NCCL_IB_DISABLE=1" or "the network is " .. tostring(x.transport)
				out[#out + 1] = (s.layer == "nccl.conf" and mention or wrong)(string.format("%s is read by the network %s alone, "
					.. "and %s: it has no effect", name, own, why), "take one of them out", s)
			end
		end
		return out
	end },
	{ name = "nccl_contradiction", env = contradictions },
	{ name = "nccl_conf_overwritten", setting = function(s, x)
		for _, other in ipairs(s.layer == "nccl.conf" and x.settings or {}) do
			if other.name == s.name and other.layer ~= "nccl.conf" and other.layer ~= "shell" and other.value ~= s.value then
				return risky(string.format("the environment wins over this file: %s is what holds", other.value and s.name .. "="
					.. other.value or "its value"), "one of the two")
			end
		end
	end },
	{ name = "nccl_ib_off_value", setting = function(s)
		if s.name == "NCCL_IB_DISABLE" and s.value and c_integer(s.value) == 0 and s.value:match("^%s*0%s*$") then
			return mention("0 is the default: it switches nothing on (GPUDirect is a matter of NCCL_NET_GDR_LEVEL and drivers)",
				"take it out")
		end
	end },
	{ name = "nccl_slow_path", setting = function(s)
		local names = { NCCL_P2P_DISABLE = "direct copies between GPUs", NCCL_SHM_DISABLE = "shared memory inside a node",
			NCCL_IB_DISABLE = "InfiniBand and RoCE" }
		if names[s.name] and s.value and not s.dynamic and c_integer(s.value) == 1 and s.layer ~= "knob" then
			return mention("it switches off " .. names[s.name] .. ": a setting to find faults with, usually a large loss",
				"take it out for runs that count")
		end
	end },
	{ name = "nccl_log_cost", setting = function(s)
		local level = s.name == "NCCL_DEBUG" and s.value and not s.dynamic and s.value:upper()
		if level == "TRACE" then
			return risky("TRACE logs every call: do not time such a run", "NCCL_DEBUG=WARN")
		elseif level == "INFO" and s.layer ~= "knob" then
			return mention("INFO writes at every init, and with SUBSYS=COLL or TUNING at every call",
				"NCCL_DEBUG=WARN for runs that are timed")
		end
	end },
	{ name = "nccl_proof_lines", setting = function(s)
		if s.name ~= "NCCL_DEBUG_SUBSYS" or not s.value or s.dynamic or s.value:find("^%^") then
			return nil
		end
		local has = set_of(parts(s.value:upper(), ","))
		if not has.ENV and not has.ALL then
			return mention('without ENV the lines "set by environment" are gone, and nothing proves that a setting was read',
				"NCCL_DEBUG_SUBSYS=" .. s.value .. ",ENV")
		end
	end },
	{ name = "nccl_undocumented", setting = function(s, x)
		local entry = s.value and x.facts.nccl[s.name]
		if entry and entry.manual == "none" and not entry.last and s.layer ~= "knob" then
			return mention("NVIDIA does not document it: it may change or vanish with any release", nil)
		end
	end },
}
