-- SPDX-License-Identifier: MIT
-- Values of NCCL's variables: what is parsed to something else than what stands there, and words that are not taken.
local LEVELS <const> = { "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS" }
local ALGORITHMS <const> = { "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat" }
local PROTOCOLS <const> = { "ll", "ll128", "simple" }
local FUNCTIONS <const> = { "broadcast", "reduce", "allgather", "reducescatter", "allreduce" }
local SUBSYSTEMS <const> = { "INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "ALLOC_HOST",
	"CALL", "PROXY", "NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS", "DESTROY", "ALL" }
local DEBUG_LEVELS <const> = { "VERSION", "WARN", "INFO", "ABORT", "TRACE" }

local function kind_of(s, x)
	local entry = x.facts.nccl[s.name]
	return entry and s.value and not s.dynamic and entry.kind or nil, entry
end

-- Variables of NCCL 2.30 that go through a parser with types: words for true and false are right there.
local typed <const> = set_of { "NCCL_WARN_ENABLE_DEBUG_INFO", "NCCL_SET_THREAD_NAME", "NCCL_PARAM_DUMP_ALL" }

local function whole_number(s, value)
	local meant = size_meant(s.value) or truth_meant(s.value)
	if s.value:match("^%s*%d+%s+#") then
		return risky("what follows the number is part of the value: only a shell takes # as a comment",
			string.format("%s=%d", s.name, value))
	end
	local decimal = s.value:match("^%s*([+-]?)0+(%d+)%s*$")
	if decimal then
		meant = tonumber((s.value:gsub("^%s*([+-]?)0+", "%1")))
	end
	return wrong(string.format('"%s" is read as %d: NCCL takes the digits at the beginning (0x: hexadecimal, 0: octal) '
		.. "and ignores the rest without a word", s.value, value),
		meant and string.format("%s=%d", s.name, meant) or s.name .. "=<a whole number>")
end

local function bounds(s, entry, value, x)
	local most = entry.most
	if (s.name == "NCCL_MIN_CTAS" or s.name == "NCCL_MAX_CTAS") and before(x.nccl, "2.25.0") then
		most = 32
	end
	if entry.kind == "bool" and value ~= 0 and value ~= 1 and value ~= -2 and value ~= 2 then
		return risky(string.format("%d is neither 0 nor 1", value), s.name .. "=1")
	elseif entry.kind == "int" and entry.least and value ~= -1 and value ~= -2
		and (value < entry.least or value > most) then
		return wrong(string.format("%d is out of range: %s goes from %d to %d; NCCL clamps or refuses what is beyond",
			value, s.name, entry.least, most), string.format("%s=%d", s.name, value < entry.least and entry.least or most))
	end
end

-- The word of the list that is the same but for case, or near.
local function word_for(word, list)
	for _, right in ipairs(list) do
		if right:lower() == word:lower() then
			return right
		end
	end
	return nearest(word:upper(), list) or nearest(word:lower(), list)
end

local function level(s)
	local right = word_for(s.value, LEVELS)
	if s.value:match("^%-?%d+$") then
		return tonumber(s.value) > 9 and risky("as a number, 4 and more all mean SYS", s.name .. "=SYS") or nil
	end
	for _, word in ipairs(LEVELS) do
		if word == s.value then
			return nil
		end
	end
	local legacy = { NODE = "PHB", HOST = "PHB", PCI = "PXB", NVLINK = "NVL", SYSTEM = "SYS" }
	right = legacy[s.value:upper()] or right
	return wrong(string.format('"%s" is none of its words, which are compared byte by byte (%s): it is ignored, and no '
		.. "line of the log says so", s.value, table.concat(LEVELS, " ")), s.name .. "=" .. (right or "PXB"))
end

-- "func:alg,alg;func:alg" -> the parts that are no word of theirs.
local function selection(s, words, x)
	local new = not before(x.nccl, "2.24.0")
	for _, clause in ipairs(parts(s.value, ";")) do
		local func, list = clause:match("^(.-):(.*)$")
		list = (list or clause):gsub("^%^", "")
		if func and before(x.nccl, "2.24.0") then
			return wrong(string.format("NCCL %s knows no names of functions here (2.24 and newer do): the whole value "
				.. "is not understood", x.nccl), s.name .. "=" .. list)
		end
		if func and not set_of(FUNCTIONS)[func:lower()] then
			local near = word_for(func, FUNCTIONS)
			return wrong(string.format('"%s" is no function of NCCL (%s): it fails at the first collective', func,
				table.concat(FUNCTIONS, " ")), near and s.name .. "=" .. s.value:gsub(func, near, 1) or nil)
		end
		for _, word in ipairs(parts(list, ",")) do
			local plain = word:lower()
			local gone = plain == "collnet" and not before(x.nccl, "2.14.0")
			if gone or (plain ~= "collnet" and not set_of(words)[plain]) then
				local near = gone and "collnetdirect" or word_for(word, words)
				return wrong(string.format('"%s" is none of its words (%s): %s', word, table.concat(words, " "), new
					and "NCCL 2.24 and newer end with an error, older ones ignore it" or "NCCL ignores it"),
					near and s.name .. "=" .. (s.value:gsub(word:gsub("%p", "%%%0"), near, 1)) or nil)
			end
		end
	end
end

local function plain_list(s)
	return not s.value:find("[:^]")
end

local function subsystems(s, x)
	for _, word in ipairs(parts((s.value:gsub("^%^", "")), ",")) do
		if not set_of(SUBSYSTEMS)[word:upper()] then
			local near = word_for(word, SUBSYSTEMS)
			return wrong(string.format('"%s" is no subsystem: %s', word, before(x.nccl, "2.30.0")
				and "it is skipped without a word" or "NCCL 2.30 discards the whole list without a word, older ones skip it"),
				near and s.name .. "=" .. (s.value:gsub(word:gsub("%p", "%%%0"), near, 1))
					or s.name .. "=INIT,ENV,NET,GRAPH,TUNING")
		end
	end
end

return rules {
	{ name = "nccl_integer", setting = function(s, x)
		local kind, entry = kind_of(s, x)
		if kind ~= "int" and kind ~= "bool" then
			return nil
		end
		if s.value:match("^%s*$") then
			return risky("an empty value counts as not set", "unset " .. s.name)
		end
		if typed[s.name] and truth_meant(s.value) then
			return nil
		end
		local value, whole = c_integer(s.value)
		if not whole then
			return whole_number(s, value)
		end
		return bounds(s, entry, value, x)
	end },
	{ name = "nccl_level", setting = function(s, x)
		if kind_of(s, x) == "level" then
			return level(s)
		end
	end },
	{ name = "nccl_nthreads", setting = function(s)
		local value = s.name == "NCCL_NTHREADS" and s.value and not s.dynamic and c_integer(s.value)
		if value and not ({ [64] = true, [128] = true, [256] = true, [512] = true })[value] then
			return wrong(string.format("%d is none of 64, 128, 256, 512: NCCL clamps it, or takes its largest", value),
				"NCCL_NTHREADS=256")
		end
	end },
	{ name = "nccl_algo", setting = function(s, x)
		if s.name ~= "NCCL_ALGO" or not s.value or s.dynamic then
			return nil
		end
		local found = selection(s, ALGORITHMS, x)
		if found then
			return found
		end
		local lists_ring = s.value:lower():find("ring", 1, true)
		if plain_list(s) and not lists_ring and not before(x.nccl, "2.24.0") then
			return (x.nccl and wrong or risky)("from NCCL 2.24 on this holds for every collective and there is no way back to "
				.. "ring: all-gather, reduce-scatter and broadcast (FSDP, ZeRO, DDP's first step) end with an error; older "
				.. "releases keep ring for them", "NCCL_ALGO=allreduce:" .. s.value:lower())
		end
	end },
	{ name = "nccl_proto", setting = function(s, x)
		if s.name ~= "NCCL_PROTO" or not s.value or s.dynamic then
			return nil
		end
		local found = selection(s, PROTOCOLS, x)
		if found then
			return found
		end
		for _, clause in ipairs(parts(s.value, ";")) do
			local list = clause:match(":(.*)$") or clause
			if list:sub(1, 1) ~= "^" and set_of(parts(list:lower(), ","))["ll128"] then
				return wrong("naming LL128 switches off NCCL's own check whether this platform keeps its order of stores: "
					.. "data can be corrupted", "NCCL_PROTO=^LL128, or leave it unset")
			end
		end
	end },
	{ name = "nccl_debug", setting = function(s)
		if s.name == "NCCL_DEBUG" and s.value and not s.dynamic and not set_of(DEBUG_LEVELS)[s.value:upper()] then
			local near = truth_meant(s.value) == 1 and "INFO" or s.value == "1" and "INFO" or word_for(s.value, DEBUG_LEVELS)
			return wrong(string.format('"%s" is none of VERSION, WARN, INFO, TRACE: nothing is logged', s.value),
				"NCCL_DEBUG=" .. (near or "INFO"))
		end
	end },
	{ name = "nccl_debug_subsys", setting = function(s, x)
		if s.name == "NCCL_DEBUG_SUBSYS" and s.value and not s.dynamic then
			return subsystems(s, x)
		end
	end },
	{ name = "nccl_debug_file", setting = function(s)
		if s.name ~= "NCCL_DEBUG_FILE" or not s.value then
			return nil
		end
		if s.value:find("^~") and not s.dynamic then
			return wrong("NCCL expands no ~: it looks for a directory of that name",
				"NCCL_DEBUG_FILE=$HOME" .. s.value:sub(2))
		end
		if not s.value:find("%%p") and not s.value:find("$", 1, true) then
			return risky("without %p all ranks write over one another's file",
				"NCCL_DEBUG_FILE=" .. s.value .. ".%h.%p")
		end
	end },
	{ name = "nccl_socket_family", setting = function(s)
		if s.name == "NCCL_SOCKET_FAMILY" and s.value and not s.dynamic
			and s.value ~= "AF_INET" and s.value ~= "AF_INET6" then
			return wrong(string.format('"%s" is neither AF_INET nor AF_INET6: it is ignored', s.value),
				"NCCL_SOCKET_FAMILY=" .. (s.value:find("6") and "AF_INET6" or "AF_INET"))
		end
	end },
	{ name = "nccl_socket_ifname", setting = function(s)
		if s.name ~= "NCCL_SOCKET_IFNAME" or not s.value or s.dynamic then
			return nil
		end
		for _, word in ipairs(parts((s.value:gsub("^[%^=]+", "")), ",")) do
			if word:find("^mlx%d") or word == "efa" or word:find("^efa_") or word:find("^rdma") or word:find("^rocep")
				or word:find("^bnxt_re") then
				return wrong(string.format('"%s" is an RDMA device, and an IP interface is wanted: none matches, and init '
					.. "fails", word), "NCCL_SOCKET_IFNAME=^docker,lo,veth; the RDMA device goes into NCCL_IB_HCA")
			end
		end
	end },
	{ name = "nccl_ib_hca", setting = function(s)
		if s.name ~= "NCCL_IB_HCA" or not s.value or s.dynamic then
			return nil
		end
		local list = s.value:gsub("^[%^=]+", "")
		for _, word in ipairs(parts(list, ",")) do
			if word:find("^e[nt][a-z]?%d") or word:find("^ib%d") or word:find("^bond%d") then
				return wrong(string.format('"%s" is an IP interface, and an RDMA device (ibv_devices lists them) is wanted: '
					.. "none matches, so InfiniBand is not used", word), "NCCL_IB_HCA==mlx5_0")
			end
		end
		if not s.value:find("^%^?=") and s.value:find("mlx5_1%f[^%d]") then
			return mention("without = in front each name is a beginning: mlx5_1 also takes mlx5_10 to mlx5_19",
				"NCCL_IB_HCA==" .. list)
		end
	end },
	{ name = "nccl_net", setting = function(s)
		local plugin = set_of { "aws libfabric", "ib", "socket", "fastrak" }
		if s.name ~= "NCCL_NET" or not s.value or s.dynamic or plugin[s.value:lower()]
			or s.value:find("^IBext") or s.value:find("^ibext") then
			return nil
		end
		local meant = { roce = "IB", infiniband = "IB", rdma = "IB", verbs = "IB",
			efa = "AWS Libfabric", ofi = "AWS Libfabric", libfabric = "AWS Libfabric",
			tcp = "Socket", sockets = "Socket", eth = "Socket", ethernet = "Socket" }
		local right = meant[s.value:lower()]
		return (right and wrong or risky)(string.format('no network of NCCL or of a plugin that is known here has the name '
			.. '"%s": init fails unless one has exactly this name', s.value), 'NCCL_NET="' .. (right or "IB") .. '"')
	end },
	{ name = "nccl_launch_mode", setting = function(s)
		if s.name == "NCCL_LAUNCH_MODE" and s.value and not s.dynamic and s.value ~= "GROUP" and s.value ~= "PARALLEL" then
			return wrong("anything but GROUP is PARALLEL, without a word", "NCCL_LAUNCH_MODE=PARALLEL")
		end
	end },
	{ name = "nccl_cta_policy", setting = function(s)
		if s.name ~= "NCCL_CTA_POLICY" or not s.value or s.dynamic then
			return nil
		end
		for _, word in ipairs(parts(s.value, "|")) do
			if not word:find("^[012]$") and not set_of { "DEFAULT", "EFFICIENCY", "ZERO" }[word] then
				local near = word_for(word, { "DEFAULT", "EFFICIENCY", "ZERO" })
				return wrong(string.format('"%s" is none of DEFAULT, EFFICIENCY, ZERO: it is ignored', word),
					"NCCL_CTA_POLICY=" .. (near or "DEFAULT"))
			end
		end
	end },
	{ name = "nccl_netdevs_policy", setting = function(s)
		if s.name == "NCCL_NETDEVS_POLICY" and s.value and not s.dynamic and s.value:upper() ~= "AUTO"
			and s.value:upper() ~= "ALL" and not s.value:upper():find("^MAX:%d+$") then
			return wrong(string.format('"%s" is none of AUTO, ALL, MAX:N: AUTO is taken', s.value),
				"NCCL_NETDEVS_POLICY=MAX:1")
		end
	end },
	-- Ranks that disagree search different rings.
	{ name = "nccl_per_rank", setting = function(s, x)
		local free = s.name:find("_FILE$") or s.name:find("^NCCL_DEBUG") or s.name == "NCCL_HOSTID"
		local text = s.dynamic and s.text or ""
		local rank = text:match("SLURM_LOCALID") or text:match("SLURM_PROCID") or text:match("[%u_]*RANK%f[^%u_]")
		if rank and not free and x.facts.nccl[s.name] then
			return wrong(string.format("its value differs from rank to rank (%s), and all must agree: rings are not found",
				rank), s.name .. " with one value for all ranks")
		end
	end },
	-- A candidate that is what NCCL does anyway cannot win: it costs its runs.
	{ name = "nccl_default", setting = function(s, x)
		local entry = s.layer == "knob" and s.value and x.facts.nccl[s.name]
		local now
		for i = 1, #(entry and entry.defaults or {}), 2 do
			if x.nccl == nil and now and now ~= entry.defaults[i + 1] then
				return nil -- it depends on the release
			end
			if not before(x.nccl, entry.defaults[i]) then
				now = entry.defaults[i + 1]
			end
		end
		if now and c_integer(s.value) == tonumber(now) and not now:find("^-") then
			return wrong(string.format("%s is NCCL's own default: the arm would be the baseline again", s.value),
				"another value")
		end
	end },
}
