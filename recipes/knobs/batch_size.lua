-- SPDX-License-Identifier: MIT
return {
	name = "batch_size",
	summary = "samples of one step of a rank",
	arg = "--batch-size",
	type = "int", min = 1,
	class = "optimisation",
	proof = "delivered",
	bottleneck = "compute",
	expect = function(_, s)
		if over(s.data_wait_ratio, 0.5) then
			return { worth_trying = false, why = "the step mostly waits for data: larger batches wait longer" }
		end
		return { why = "larger batches fill the device better and pay fixed costs less often" }
	end,
	risk = "another batch is another training: learning rate and schedule must follow, and the loss be watched",
	notes = "give default and values yourself, and a guard on the loss at equal samples; Megatron-LM: "
		.. "--micro-batch-size with --global-batch-size fixed does not change the optimisation; DeepSpeed: "
		.. "train_micro_batch_size_per_gpu in its JSON",
}
