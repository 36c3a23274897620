-- SPDX-License-Identifier: MIT
-- What every recipe may call. Runs before each file, in the same sandbox: no files, no clock, no
-- randomness. path("x") is there as well: x relative to the file that calls it.

-- Gains below this are not worth a trial, whatever the budget: the default of min_effect.
local LEAST_GAIN <const> = 0.01

local function check_table(who, t)
	if t ~= nil and type(t) ~= "table" then
		error(who .. ": expected a table, got a " .. type(t), 3)
	end
end

local function named(who, field, name, overrides)
	if type(name) ~= "string" then
		error(who .. ": expected a name, got a " .. type(name), 3)
	end
	local out = {}
	check_table(who, overrides)
	for key, value in pairs(overrides or {}) do
		out[key] = value
	end
	out[field] = name
	return out
end

-- A knob of the catalogue, with other values, default, argument, ...:
--   knob("num_workers", { values = { 2, 4 }, arg = "--workers" })
function knob(name, overrides)
	return named("knob", "name", name, overrides)
end

-- The workload in workloads/NAME.lua of the recipe path, with changes.
function workload(name, overrides)
	return named("workload", "use", name, overrides)
end

-- Is the signal known, and above the limit? A signal that is absent is nil.
function over(signal, limit)
	return signal ~= nil and signal > limit
end

-- 0.1234 -> "12.3 %"
function percent(share)
	return string.format("%.1f %%", 100 * share)
end

-- What can be gained at most when a share of the step disappears: w / (1 - w).
function ceiling_of(share)
	return share < 1 and share / (1 - share) or 1e9
end

-- An `expect` for a knob that can take away at most one share of the step.
--   expect = relieves("data_wait_ratio", "waiting for data")
function relieves(signal, words)
	return function(_, s)
		local share = s[signal]
		if share == nil then
			return { why = "how much of the step goes into " .. words .. " was not measured" }
		end
		local most = ceiling_of(share)
		return {
			ceiling = most,
			worth_trying = most >= LEAST_GAIN,
			why = string.format("%s takes %s of the step: at most %s can be gained", words, percent(share),
				percent(most)),
		}
	end
end

-- CPUs that one rank may use, nil if unknown.
function cpus_per_rank(s)
	return s.ncpu and s.ncpu / (s.ranks_per_node or 1)
end

-- An `expect` that only says why: no share of the step tells what it can give.
--   expect = told("a copy of every gradient falls away")
function told(why)
	return function()
		return { why = why }
	end
end

-- The `expect` of a setting that only counts where there is more than one rank, one node, or a GPU.
-- What is not known counts as there.
local function only_if(absent, why, expect)
	return function(value, s, current)
		if absent(s) then
			return { worth_trying = false, why = why }
		end
		return expect(value, s, current)
	end
end

-- A command may start ranks of its own: only NCCL's own count tells that there is one alone.
function among_ranks(expect)
	return only_if(function(s)
		return s.nccl_nranks == 1
	end, "there is one rank: it has nobody to communicate with", expect)
end

function between_nodes(expect)
	return only_if(function(s)
		return s.nodes == 1
	end, "all ranks are on one node: this network is not used", expect)
end

function on_gpus(expect)
	return only_if(function(s)
		return s.gpus_per_node == 0
	end, "there is no GPU: nothing reads it", expect)
end
