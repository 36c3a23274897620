-- SPDX-License-Identifier: MIT
-- Threads of a rank on the CPU.
return {
	{
		name = "OMP_NUM_THREADS",
		summary = "threads of a rank inside one operator on the CPU",
		env = "OMP_NUM_THREADS",
		type = "int", min = 1, max = 1024,
		values = { 1, 2, 4, 8 },
		class = "numerics",
		proof = { level = "effective", metric = "tree_threads", expect = "change" },
		implies = { "env.MKL_NUM_THREADS" },
		documented = "user",
		applies = "operators on the CPU; torch in DataLoader workers has one thread in any case",
		safe = "1 to the CPUs of a rank",
		when = "operators run on the CPU, or threads of several ranks are in each other's way",
		evidence = "torch.__config__.parallel_info()",
		mistakes = {
			"torchrun sets 1 where nobody does: an srun in its place changes two things",
			"DeepSpeed's launcher does not carry OMP_* to other nodes: .deepspeed_env",
		},
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
	},
	{
		name = "TOKENIZERS_PARALLELISM",
		summary = "threads of Hugging Face's tokenizers",
		env = "TOKENIZERS_PARALLELISM",
		one_of = { "true", "false" },
		values = { "true", "false" },
		class = "neutral",
		proof = "delivered",
		documented = "user",
		applies = "tokenising while training",
		safe = "false in workers",
		when = "texts are tokenised while the step waits",
		bottleneck = "host",
		expect = relieves("data_wait_ratio", "waiting for data"),
		evidence = "tree_threads",
		risk = "low; threads times workers may exceed the CPUs",
		mistakes = {
			"after a fork tokenizers warn and go on with one thread",
			"tokenising beforehand takes the whole wait away: see tokenised_data",
		},
		notes = "with workers, parallelism comes from them: false avoids the warning",
	},
	{
		name = "KMP_AFFINITY",
		summary = "where threads of Intel's and LLVM's OpenMP stay",
		env = "KMP_AFFINITY",
		type = "text",
		values = { "granularity=fine,compact,1,0", "disabled" },
		class = "neutral",
		proof = "delivered",
		documented = "user",
		applies = "libiomp5 and libomp; GNU's libgomp reads GOMP_CPU_AFFINITY",
		safe = "disabled",
		when = "threads wander, or all workers are found on one CPU",
		bottleneck = "host",
		expect = told("threads that stay keep their caches; threads that are bound wrongly share one CPU"),
		evidence = "Cpus_allowed_list in /proc of the workers",
		risk = "medium: workers inherit the mask of the thread that starts them",
		mistakes = { "set, and torch imported early: every DataLoader worker on one CPU" },
		notes = "try disabled first where workers seem bound",
	},
}
