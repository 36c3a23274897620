-- SPDX-License-Identifier: MIT
-- DeepSpeed's JSON beside the command line that names it. Keys that it does not know are dropped without a word, at the
-- top and under "checkpoint"; under "zero_optimization" they end the job.
local TOP <const> = { "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "optimizer",
	"scheduler", "fp16", "bf16", "amp", "gradient_clipping", "zero_optimization", "zero_allow_untested_optimizer",
	"zero_force_ds_cpu_optimizer", "communication_data_type", "seq_parallel_communication_data_type", "prescale_gradients",
	"gradient_predivide_factor", "sparse_gradients", "steps_per_print", "wall_clock_breakdown", "dump_state",
	"flops_profiler", "activation_checkpointing", "aio", "tensorboard", "wandb", "csv_monitor", "comet", "elasticity",
	"autotuning", "checkpoint", "data_types", "comms_logger", "data_efficiency", "curriculum_learning",
	"compression_training", "sparse_attention", "memory_breakdown", "disable_allgather", "compile", "hybrid_engine",
	"pipeline", "nebula", "datastates_ckpt", "dataloader_drop_last", "timers", "tensor_parallel", "eigenvalue",
	"progressive_layer_drop", "quantize_training", "use_data_before_expert_parallelism", "graph_harvesting",
	"zero_quantized_weights", "monitor_config", "torch_autocast", "use_node_local_storage" }
local CHECKPOINT <const> = { "tag_validation", "load_universal", "use_node_local_storage", "parallel_write", "writer" }
-- What the same thing is called on the command line of a Trainer.
local TWICE <const> = {
	{ key = "train_micro_batch_size_per_gpu", option = "--per_device_train_batch_size" },
	{ key = "gradient_accumulation_steps", option = "--gradient_accumulation_steps" },
	{ key = "gradient_clipping", option = "--max_grad_norm" },
}

local function keys(out, at, file, table, known, where)
	for key in pairs(table) do
		if not set_of(known)[key] and key:sub(1, 1) ~= "_" then
			local near = nearest(key, known)
			local say = (near or where ~= "") and wrong or risky
			out[#out + 1] = say(string.format('%s: DeepSpeed has no key "%s%s": it drops it without a word', file, where, key),
				near and where .. near or "take it out", at)
		end
	end
end

local function enabled(t)
	return type(t) == "table" and t.enabled == true
end

local function batch(out, at, file, ds, x)
	local total, micro, steps = ds.train_batch_size, ds.train_micro_batch_size_per_gpu, ds.gradient_accumulation_steps or 1
	local world = (x.nodes or 1) * (x.gpus_per_node or 0)
	if type(total) == "number" and type(micro) == "number" and type(steps) == "number" and world > 0
		and total ~= micro * steps * world then
		out[#out + 1] = wrong(string.format("%s: train_batch_size %d is not %d a GPU x %d steps x %d GPUs: DeepSpeed asserts",
			file, total, micro, steps, world), string.format("train_batch_size: %d", micro * steps * world), at)
	end
end

local function stage(out, at, file, zero)
	for key in pairs(zero) do
		if key:find("^stage3_") and type(zero.stage) == "number" and zero.stage < 3 then
			out[#out + 1] = risky(string.format("%s: %s only counts at stage 3, and the stage is %d", file, key, zero.stage),
				"take it out", at)
		end
	end
end

local function both(out, c, file, ds)
	for _, pair in ipairs(TWICE) do
		local given, own = option(c, pair.option), ds[pair.key]
		if type(own) == "number" and type(given) == "string" and tonumber(given) and tonumber(given) ~= own then
			out[#out + 1] = wrong(string.format("%s %s, and %s has %s: %g: a Trainer ends with an error, and without a "
				.. "Trainer the file wins", pair.option, given, file, pair.key, own), pair.key .. ': "auto"', c)
		end
	end
	for _, kind in ipairs { "bf16", "fp16" } do
		local given = option(c, "--" .. kind)
		if given ~= nil and given ~= "False" and given ~= "false" and type(ds[kind]) == "table"
			and ds[kind].enabled == false then
			out[#out + 1] = wrong(string.format("--%s, and %s switches it off", kind, file),
				kind .. ': { "enabled": "auto" }', c)
		end
	end
end

return rules {
	{ name = "deepspeed_json", command = function(c, x)
		local file = option(c, "--deepspeed", "--deepspeed_config", "--ds_config", "--deepspeed-config")
		local ds = type(file) == "string" and x.json and x.json[file]
		if not ds then
			return nil
		end
		local out = {}
		keys(out, c, file, ds, TOP, "")
		if type(ds.checkpoint) == "table" then
			keys(out, c, file, ds.checkpoint, CHECKPOINT, "checkpoint.")
		end
		if enabled(ds.bf16) and enabled(ds.fp16) then
			out[#out + 1] = wrong(file .. ": bf16 and fp16 exclude each other", "one of the two", c)
		end
		if type(ds.zero_optimization) == "table" then
			stage(out, c, file, ds.zero_optimization)
		end
		batch(out, c, file, ds, x)
		both(out, c, file, ds)
		return out
	end },
}
