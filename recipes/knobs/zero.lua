-- SPDX-License-Identifier: MIT
-- DeepSpeed's ZeRO. Its settings are keys of a JSON file: name it in workload.config, and each arm gets a copy
-- with its values. A wrong key under zero_optimization is an error; a wrong one at the top, or under
-- checkpoint, is dropped without a word.
local exposed <const> = among_ranks(relieves("comm_exposed_ratio", "communication that nothing hides"))

-- The Trainer hands the file on (--deepspeed FILE), so both take the same keys.
local function key(t)
	local path = "key " .. t.path
	t.path = nil
	t.passed = { deepspeed = path, hf_trainer = path, lightning = "code DeepSpeedStrategy(config=...)" }
	t.class = t.class or "numerics" -- buckets: sums come in other groups
	t.proof = "delivered"
	t.documented = "user"
	t.bottleneck = t.bottleneck or "communication"
	t.expect = t.expect or exposed
	t.evidence = t.evidence or "DeepSpeed prints its whole configuration at the start"
	return t
end

return {
	key {
		name = "zero_stage",
		path = "zero_optimization.stage",
		summary = "what is sharded: 1 optimiser, 2 gradients too, 3 parameters too",
		one_of = { "0", "1", "2", "3" },
		values = { 1, 2, 3 },
		bottleneck = "memory",
		applies = "DeepSpeed",
		safe = "the lowest that fits",
		when = "memory is short (higher), or stage 3's all-gathers are exposed (lower)",
		evidence = "mem_peak_reserved_gib",
		risk = "stage 3 moves half as much again as data parallel does",
		mistakes = { "stage 1 saves the share 1 - 1/N of the optimiser's state alone" },
		notes = "a lower stage with a smaller micro-batch often beats a higher one",
	},
	key {
		name = "zero_overlap_comm",
		path = "zero_optimization.overlap_comm",
		summary = "reduce gradients while backward goes on",
		type = "bool",
		values = { true },
		applies = "stages 1 to 3",
		safe = "both",
		when = "the reduction of gradients is exposed",
		evidence = "NCCL kernels beside computing in a trace",
		risk = "twice the memory of buckets",
		mistakes = { "the documents say false; the code takes true for stage 3" },
		notes = "a stream of its own, not a thread",
	},
	key {
		name = "zero_reduce_bucket_size",
		path = "zero_optimization.reduce_bucket_size",
		summary = "elements that are reduced together",
		type = "int", min = 1000000, max = 2000000000,
		default = 500000000, values = { 50000000, 200000000, 1000000000 },
		applies = "stages 1 to 3",
		safe = "50000000 to 500000000",
		when = "many small reductions (raise it), or memory is short (lower it)",
		risk = "memory: the bucket, twice with overlap_comm",
		mistakes = { "it counts elements, not bytes" },
		notes = "5e8 by default",
	},
	key {
		name = "zero_allgather_bucket_size",
		path = "zero_optimization.allgather_bucket_size",
		summary = "elements that are gathered together",
		type = "int", min = 1000000, max = 2000000000,
		default = 500000000, values = { 50000000, 1000000000 },
		applies = "stages 1 and 2",
		safe = "50000000 to 1000000000",
		when = "the all-gather of parameters is exposed, or memory is short",
		risk = "memory: the bucket",
		mistakes = { "stage 3 does not read it" },
		notes = "5e8 by default",
		class = "neutral",
	},
	key {
		name = "zero_stage3_prefetch_bucket_size",
		path = "zero_optimization.stage3_prefetch_bucket_size",
		summary = "elements of parameters that are fetched ahead",
		type = "int", min = 0, max = 2000000000,
		default = 50000000, values = { 200000000, 500000000 },
		applies = "stage 3",
		safe = "50000000 to 500000000",
		when = "all-gathers of stage 3 are exposed and memory is free",
		risk = "memory: what was fetched too early",
		mistakes = { "the table in the documents says 5e8; the code takes 5e7" },
		notes = "5e7 by default",
		class = "neutral",
	},
	key {
		name = "zero_stage3_param_persistence_threshold",
		path = "zero_optimization.stage3_param_persistence_threshold",
		summary = "smaller parameters stay on every rank, in elements",
		type = "int", min = 0, max = 2000000000,
		default = 100000, values = { 1000000 },
		applies = "stage 3",
		safe = "100000 to 1000000",
		when = "many small all-gathers",
		risk = "memory: all small parameters on every rank",
		notes = "1e5 by default",
		class = "neutral",
	},
	key {
		name = "zero_hpz_partition_size",
		path = "zero_optimization.zero_hpz_partition_size",
		summary = "a second shard inside a node, so that backward gathers there (ZeRO++)",
		type = "int", min = 1, max = 1024,
		default = 1,
		applies = "stage 3 over several nodes",
		safe = "the number of GPUs a node",
		when = "the all-gather of backward between nodes is exposed",
		expect = between_nodes(relieves("comm_exposed_ratio", "communication that nothing hides")),
		risk = "memory: one more shard a rank",
		notes = "the value is the GPUs of your nodes",
		class = "neutral",
	},
	key {
		name = "zero_quantized_weights",
		path = "zero_optimization.zero_quantized_weights",
		summary = "gather parameters as 8-bit numbers (ZeRO++)",
		type = "bool",
		default = false, values = { true },
		class = "optimisation",
		applies = "stage 3",
		safe = "false",
		when = "all-gathers between nodes are exposed",
		expect = between_nodes(relieves("comm_exposed_ratio", "communication that nothing hides")),
		risk = "high: computed with rounded parameters; watch the loss",
		notes = "needs a long run beside the baseline's before it is kept",
	},
	key {
		name = "zero_quantized_gradients",
		path = "zero_optimization.zero_quantized_gradients",
		summary = "reduce gradients as 4-bit numbers (ZeRO++)",
		type = "bool",
		default = false, values = { true },
		class = "optimisation",
		applies = "stage 3",
		safe = "false",
		when = "the reduction of gradients between nodes is exposed",
		expect = between_nodes(relieves("comm_exposed_ratio", "communication that nothing hides")),
		risk = "high: gradients are rounded; watch the loss",
		notes = "needs a long run beside the baseline's before it is kept",
	},
}
