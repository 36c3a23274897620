-- SPDX-License-Identifier: MIT
-- Reduction in the network (CollNet, SHARP): the switches add up. It needs switches with SHARP, its
-- aggregation manager, and a plugin that offers it; without them NCCL goes on as before, without a word.
local exposed <const> = between_nodes(relieves("comm_exposed_ratio", "communication that nothing hides"))
local acknowledged <const> = { NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,ENV" }

return {
	{
		name = "NCCL_COLLNET_ENABLE",
		summary = "reduction in the network",
		env = "NCCL_COLLNET_ENABLE",
		since = "nccl 2.6.4", documented = "system",
		one_of = { "0", "1" },
		default = 0, defaults = { ["nccl 2.6.4"] = 0, ["nccl 2.12.10"] = "auto" }, values = { 1 },
		class = "numerics",
		-- The variable is read whether or not there is a plugin: only the plugin's line shows that it counts.
		proof = {
			level = "acknowledged", log = "NET/Plugin ?: Loaded collnet plugin \\S+",
			env = { NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,ENV,NET" },
		},
		idle = { "NCCL_NET_PLUGIN=none" },
		bottleneck = "communication",
		applies = "InfiniBand with SHARP and the plugin nccl-rdma-sharp",
		safe = "0; 1 on fabrics with SHARP",
		when = "all-reduces between many nodes are exposed",
		expect = exposed,
		evidence = "TUNING: Algo COLLNET_DIRECT or COLLNET_CHAIN at the job's sizes",
		risk = "sums come in another order; groups of the switch are limited",
		mistakes = {
			"without the plugin it does nothing, and nobody says so",
			"2.27.3 reads it once: switching it between communicators does nothing",
			"NCCL_ALGO must allow CollnetDirect or CollnetChain",
		},
		notes = "Megatron-LM: use_sharp",
	},
	{
		name = "NCCL_COLLNET_NODE_THRESHOLD",
		summary = "nodes from which on the network reduces",
		env = "NCCL_COLLNET_NODE_THRESHOLD",
		since = "nccl 2.9.9", documented = "system",
		type = "int", min = 1, max = 100000,
		default = 2,
		class = "numerics",
		proof = { level = "acknowledged", fact = "nccl.env.NCCL_COLLNET_NODE_THRESHOLD", env = acknowledged },
		idle = { "NCCL_COLLNET_ENABLE=0" },
		bottleneck = "communication",
		applies = "NCCL_COLLNET_ENABLE=1",
		safe = "2",
		when = "small jobs are slower with reduction in the network",
		expect = exposed,
		risk = "low",
		notes = "give the values yourself",
	},
	{
		name = "use_sharp",
		summary = "Megatron-LM: reduction in the network for the data-parallel group",
		passed = { megatron = "flag --use-sharp" },
		flag = true,
		default = false, values = { true },
		class = "numerics",
		proof = { level = "acknowledged", log = "NET/Plugin ?: Loaded collnet plugin \\S+",
			env = { NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,ENV,NET" } },
		bottleneck = "communication",
		documented = "user",
		applies = "InfiniBand with SHARP",
		safe = "false",
		when = "the data-parallel all-reduce or reduce-scatter is exposed between nodes",
		expect = exposed,
		risk = "sums come in another order",
		notes = "one group alone gets it: groups of the switch are few",
	},
}
