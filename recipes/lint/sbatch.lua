-- SPDX-License-Identifier: MIT
-- Lines of a job script that Slurm does not read as they are meant.
local severity <const> = {
	unknown = function(n) return wrong(n.text, nil, n) end,
	ignored = function(n) return wrong(n.text, nil, n) end,
	unexpanded = function(n) return wrong(n.text, nil, n) end,
	off = function(n) return mention(n.text, nil, n) end,
}

return rules {
	{ name = "sbatch_line", all = function(x)
		local out = {}
		for _, n in ipairs(x.notes or {}) do
			local say = severity[n.kind]
			out[#out + 1] = say and say(n) or nil
		end
		return out
	end },
}
