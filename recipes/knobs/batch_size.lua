-- SPDX-License-Identifier: MIT
-- Samples of a step. With more of them a step pays its fixed costs less often, and learns otherwise: a
-- learning rate that fits one batch does not fit four of them. Rule for SGD: the rate grows with the batch;
-- for Adam: with its square root. Declare it: a rate is a knob of your own, or a bundle with the batch. The
-- loss is compared at equal samples.
local MOST <const> = 8 -- steps of accumulation that the measured ratio may ask for

-- What is exposed is paid once in n micro-steps.
local function accumulated(n, s, current)
	local exposed = s.comm_exposed_ratio
	if exposed == nil then
		return { why = "how much of the step is exposed communication was not measured" }
	end
	local now = current or 1
	local step = 1 - exposed + exposed * now / n
	local gain = 1 / step - 1
	local why = string.format("exposed communication takes %s of the step, and would be paid once in %d micro-steps",
		percent(exposed), n)
	if over(s.compute_ratio, 0) and s.comm_kernel_ratio then
		local ratio = s.comm_kernel_ratio / s.compute_ratio
		local wanted = math.max(1, math.min(MOST, math.floor(ratio + 0.5)))
		why = why .. string.format("; communication over computing is %.2f, which asks for %d", ratio, wanted)
		-- Larger steps than the ratio asks for hide nothing more.
		if n > 2 * math.max(wanted, 2) then
			return { worth_trying = false, why = why }
		end
	end
	return { gain = gain, ceiling = ceiling_of(exposed), worth_trying = gain >= 0.01, why = why }
end

return {
	{
		name = "batch_size",
		summary = "samples of one step of a rank",
		arg = "--batch-size",
		passed = {
			hf_trainer = "--per_device_train_batch_size",
			megatron = "not that is micro_batch_size, with the global batch fixed",
			deepspeed = "key train_micro_batch_size_per_gpu",
			lightning = "--data.batch_size",
			nanogpt = "--batch_size=",
			torchtune = "batch_size=",
			torchtitan = "--training.local_batch_size",
			script = "DataLoader(batch_size=...)",
		},
		type = "int", min = 1,
		class = "optimisation",
		proof = "delivered",
		documented = "user",
		applies = "whatever trains",
		safe = "as far as device memory goes; no need for a power of two",
		when = "device memory is free and kernels are small",
		evidence = "samples_per_step; mem_peak_reserved_gib",
		mistakes = {
			"more samples a second are worth nothing if the loss at equal samples is worse",
			"without fewer steps of accumulation the global batch grows, and with it the learning rate's optimum",
			"names of torchtitan's arguments move between releases",
		},
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
	},
	{
		name = "micro_batch_size",
		summary = "samples of a micro-step, with the global batch held",
		passed = { megatron = "--micro-batch-size" },
		type = "int", min = 1, max = 65536,
		class = "numerics", -- the same samples a step, summed in other groups
		proof = { level = "acknowledged", log = "(?i)\\bmicro_batch_size \\.{2,} {value}\\b" },
		documented = "user",
		bottleneck = "compute",
		applies = "Megatron-LM with --global-batch-size",
		safe = "divisors of the global batch over the data-parallel ranks",
		when = "device memory is free and kernels are small",
		expect = on_gpus(relieves("compute_ratio", "computing")),
		evidence = "mem_peak_reserved_gib",
		risk = "memory; fewer micro-batches make the pipeline's bubble larger",
		mistakes = { "without --global-batch-size it changes the batch" },
		notes = "give default and values yourself",
	},
	{
		name = "gradient_accumulation",
		summary = "micro-steps for each step of the optimiser",
		arg = "--gradient-accumulation-steps",
		passed = {
			hf_trainer = "--gradient_accumulation_steps",
			lightning = "--trainer.accumulate_grad_batches",
			torchtune = "gradient_accumulation_steps=",
			nanogpt = "--gradient_accumulation_steps=",
			deepspeed = "key gradient_accumulation_steps",
			megatron = "not it follows from --global-batch-size over micro-batch x data-parallel ranks",
			torchtitan = "not it follows from --training.global_batch_size",
		},
		type = "int", min = 1, max = 4096,
		default = 1, values = { 2, 4, 8 },
		class = "optimisation",
		proof = "delivered",
		documented = "user",
		bottleneck = "communication",
		applies = "data parallel",
		safe = "1, unless the batch shrinks by as much: then the global batch stays",
		when = "communication exceeds computing: steps near the ratio of the two",
		expect = among_ranks(accumulated),
		evidence = "collectives a step in a trace; samples_per_step",
		risk = "the global batch grows: learning rate and clipping must follow; watch the loss at equal samples",
		mistakes = {
			"without no_sync (or set_requires_gradient_sync) every micro-step communicates: nothing is gained",
			"rate x steps is SGD's rule; Adam's grows with the square root",
			"nanoGPT divides the value by the number of ranks",
			"changing it while training runs makes the run another one",
		},
		notes = "a rise of the validation loss three times in a row is the sign to go back",
	},
}
