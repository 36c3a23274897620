-- SPDX-License-Identifier: MIT
return {
	name = "OMP_NUM_THREADS",
	summary = "threads of a rank inside one operator on the CPU",
	env = "OMP_NUM_THREADS",
	type = "int", min = 1, max = 1024,
	values = { 1, 2, 4, 8 },
	class = "numerics",
	proof = { level = "effective", metric = "tree_threads", expect = "change" },
	implies = { "env.MKL_NUM_THREADS" },
	bottleneck = "host",
	expect = function(value, s, current)
		local cpus = cpus_per_rank(s)
		if current == nil and cpus == value then
			return {
				worth_trying = false,
				why = string.format("%d threads on %d CPUs are what OpenMP takes by itself", value, cpus),
			}
		end
		if over(s.data_wait_ratio, 0.1) and over(cpus, 1) and value < cpus then
			return {
				why = string.format("the step waits %s of its time for data: CPUs that compute less can decode more",
					percent(s.data_wait_ratio)),
			}
		end
		return { why = "the best number depends on the sizes of the operators and on who else needs the CPUs" }
	end,
	lint = function(value, s)
		local cpus = cpus_per_rank(s)
		if over(cpus, 0) and value > cpus then
			return string.format("%d threads on %g CPUs per rank: they would take turns", value, cpus)
		end
	end,
	risk = "sums are split otherwise among other numbers of threads: the last digits change",
	notes = "torchrun sets it to 1 when nobody does and there are several ranks on the node, srun does not: a launcher "
		.. "may be the real difference between two runs; DataLoader workers run torch with one thread in any case, "
		.. "but numpy and tokenizers in them follow it",
}
