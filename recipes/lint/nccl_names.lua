-- SPDX-License-Identifier: MIT
-- Names of NCCL's variables. NCCL asks getenv() for the names that it knows and never looks for others: what is
-- misspelt, gone, or not there yet is accepted without a word.

-- What users see of a name that nobody reads.
local SILENT <const> = "NCCL never says so"

-- The entry of `others` for the name itself, or for a beginning of it with a * behind.
local function other_owner(name, others)
	if others[name] then
		return others[name]
	end
	for pattern, entry in pairs(others) do
		if pattern:sub(-1) == "*" and name:sub(1, #pattern - 1) == pattern:sub(1, -2) then
			return entry
		end
	end
end

-- NAME=VALUE to write, where the value is one that can be kept.
local function with_value(name, s)
	return s.value and not s.dynamic and name .. "=" .. s.value or name
end

local function reads(name, last, instead, s)
	local what = string.format("no NCCL after %s reads %s: it changes nothing, and %s", last, name, SILENT)
	return what, instead and with_value(instead, s) or "take it out"
end

-- A name that NCCL reads in some release: does the one at hand?
local function in_window(s, x, entry, instead)
	local name = s.name
	if entry.last and (from(x.nccl, entry.last) and x.nccl ~= entry.last) then
		return wrong(reads(name, entry.last, instead, s))
	end
	if entry.last and x.nccl == nil then
		local old = before(entry.last, "2.19.0")
		return (old and wrong or risky)(reads(name, entry.last, instead, s))
	end
	if before(x.nccl, entry.first) then
		return wrong(string.format("NCCL %s does not read %s: %s is the first that does", x.nccl, name, entry.first),
			instead and with_value(instead, s) or "take it out, or use a newer NCCL")
	end
end

-- What older releases have in place of a name that is not there yet.
local earlier <const> = {
	NCCL_MIN_CTAS = "NCCL_MIN_NCHANNELS", NCCL_MAX_CTAS = "NCCL_MAX_NCHANNELS",
	NCCL_MIN_NCHANNELS = "NCCL_MIN_NRINGS", NCCL_MAX_NCHANNELS = "NCCL_MAX_NRINGS",
	NCCL_MNNVL_ENABLE = "NCCL_MNNVL", NCCL_NET_GDR_LEVEL = "NCCL_IB_GDR_LEVEL",
	NCCL_WORK_FIFO_BYTES = "NCCL_WORK_FIFO_DEPTH",
	NCCL_ALLOC_P2P_NET_LL_BUFFERS = "NCCL_NCCL_ALLOC_P2P_NET_LL_BUFFERS",
}
-- Old names that are still read.
local aliases <const> = {
	NCCL_MIN_NRINGS = "NCCL_MIN_CTAS", NCCL_MAX_NRINGS = "NCCL_MAX_CTAS",
	NCCL_MIN_NCHANNELS = "NCCL_MIN_CTAS", NCCL_MAX_NCHANNELS = "NCCL_MAX_CTAS",
}

local function known_name(s, x, entry)
	local meant = x.facts.nccl_wrong.meant[s.name]
	local instead = meant and meant.write
	if before(x.nccl, entry.first) then
		instead = earlier[s.name]
		local older = instead and x.facts.nccl[instead]
		if older and before(x.nccl, older.first) then
			instead = nil
		end
	end
	local found = in_window(s, x, entry, instead)
	if not found and aliases[s.name] and not before(x.nccl, "2.17.0") then
		return mention("an old name that is still read; deprecated since NCCL 2.17", with_value(aliases[s.name], s))
	end
	return found
end

local function unknown_name(s, x)
	local wrong_names = x.facts.nccl_wrong
	local meant, nobody = wrong_names.meant[s.name], wrong_names.nobody[s.name]
	local owner = other_owner(s.name, wrong_names.others)
	if owner and owner.write then
		return risky(string.format("this is a variable of %s, not of NCCL, under its old name", owner.owner),
			with_value(owner.write, s))
	end
	if owner then
		return nil
	end
	if nobody then
		return wrong("nothing reads " .. s.name .. ": " .. nobody, "take it out")
	end
	local near = meant and meant.write or nearest_name(s.name, x.facts.nccl, "NCCL_")
	if s.used and not meant then
		return nil -- a variable of the script's own
	elseif not near and not meant then
		return risky(string.format("no NCCL from 2.3.5 to 2.30.7 reads %s, and it is near to none of its names: it changes "
			.. "nothing, unless a program of yours reads it", s.name), "take it out")
	end
	return wrong(string.format("no NCCL from 2.3.5 to 2.30.7 reads %s: it changes nothing, and %s%s", s.name, SILENT,
		meant and meant.why and "; " .. meant.why or ""), near and with_value(near, s) or "take it out")
end

return rules {
	{ name = "nccl_name", setting = function(s, x)
		if s.name:sub(1, 5) ~= "NCCL_" or (s.value == nil and not s.dynamic) then
			return nil
		end
		local entry = x.facts.nccl[s.name]
		if entry then
			return known_name(s, x, entry)
		end
		if s.name ~= s.name:upper() and x.facts.nccl[s.name:upper()] then
			return wrong("names are compared byte by byte: nothing reads " .. s.name, with_value(s.name:upper(), s))
		end
		return unknown_name(s, x)
	end },
	{ name = "nccl_name_case", setting = function(s, x)
		local upper = s.name:upper()
		if s.name:sub(1, 5) ~= "NCCL_" and upper:sub(1, 5) == "NCCL_" and s.layer ~= "shell" and not s.used then
			local real = x.facts.nccl[upper] and upper or nearest_name(upper, x.facts.nccl, "NCCL_")
			return real and wrong("names are compared byte by byte: nothing reads " .. s.name, with_value(real, s)) or nil
		end
	end },
	{ name = "nccl_prefix", setting = function(s, x)
		local prefix, rest = s.name:match("^(%u+)_([%u%d_]+)$")
		if prefix and prefix ~= "NCCL" and (nearest(prefix, { "NCCL" }) or prefix == "NVIDIA")
			and #prefix >= 3 and x.facts.nccl["NCCL_" .. rest] and prefix ~= "RCCL" and prefix ~= "ACCL" then
			return wrong("nothing reads " .. s.name .. ": NCCL's names begin with NCCL_", with_value("NCCL_" .. rest, s))
		end
	end },
}
