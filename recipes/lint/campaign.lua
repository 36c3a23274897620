-- SPDX-License-Identifier: MIT
-- A campaign's own logic: changes of the model or of the training that are passed off as settings of the system,
-- several changes at once, and targets that no device can reach.

-- Options that make another model of it. `_` stands for `-` too; a path may come before ("model.hidden_size").
local MODEL <const> = set_of {
	"hidden_size", "hidden_dim", "d_model", "n_embd", "embed_dim", "num_layers", "n_layer", "n_layers",
	"num_hidden_layers", "layers", "n_head", "n_heads", "num_heads", "num_attention_heads",
	"num_key_value_heads", "n_kv_heads", "num_query_groups", "ffn_hidden_size", "intermediate_size",
	"ffn_dim", "seq_length", "seq_len", "sequence_length", "max_seq_length", "max_seq_len", "max_length",
	"block_size", "encoder_seq_length", "max_position_embeddings", "vocab_size", "activation",
	"activation_function", "hidden_act", "num_experts", "moe_router_topk", "model", "model_name",
	"model_name_or_path", "model_size", "arch", "architecture", "kv_channels", "head_dim", "flavor",
}
-- Samples of one optimiser step; the product of those that are there counts.
local BATCH <const> = set_of {
	"batch_size", "micro_batch_size", "per_device_train_batch_size", "train_batch_size", "local_batch_size",
	"train_micro_batch_size_per_gpu", "micro_batch", "per_gpu_batch_size", "mbs",
	"gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum", "grad_accum_steps",
	"accumulation_steps", "gas",
}
local GLOBAL_BATCH <const> = set_of {
	"global_batch_size", "gbs", "total_batch_size",
}
-- What else changes how training goes.
local DYNAMICS <const> = set_of {
	"lr", "learning_rate", "weight_decay", "optim", "optimizer", "adam_beta1", "adam_beta2", "momentum",
	"clip_grad", "max_grad_norm", "lr_warmup_iters", "warmup_ratio", "lr_scheduler_type", "dropout",
	"hidden_dropout", "attention_dropout", "label_smoothing", "image_size", "img_size", "resolution",
}
-- Rounding.
local NUMERICS <const> = set_of {
	"bf16", "fp16", "fp8", "amp", "dtype", "precision", "mixed_precision", "tf32", "torch_dtype", "compile",
	"torch_compile", "attn_implementation", "attention_backend", "use_flash_attn",
}

-- "--model.hidden-size=" -> "hidden_size"
local function plain(name)
	return (name:gsub("=$", ""):gsub("^%-+", ""):gsub("-", "_"):match("([^.]*)$")):lower()
end

-- Options and key=value words of a command: plain name -> value.
local function options_of(words)
	local out = {}
	for i, word in ipairs(words) do
		local name, value = word:match("^(%-*[%a][%w_.-]*)=(.*)$")
		if not name and word:find("^%-%-?%a") then
			name, value = word, words[i + 1]
			value = value and not value:find("^%-%-?%a") and value or "set"
		end
		if name then
			out[plain(name)] = value
		end
	end
	return out
end

-- What an arm changes: a list of { name =, text = }.
local function changes(x, arm)
	local out = {}
	local base = options_of(x.commands[1] and x.commands[1].words or {})
	for _, s in ipairs(arm.settings) do
		out[#out + 1] = { name = plain(s.name), text = s.name .. (s.value and "=" .. s.value or " taken out") }
	end
	if #arm.commands == 0 then
		return out, base, base
	end
	local now = options_of(arm.commands[1].words)
	local seen = {}
	for _, from_here in ipairs { base, now } do
		for name in pairs(from_here) do
			if base[name] ~= now[name] and not seen[name] then
				seen[name] = true
				out[#out + 1] = { name = name, text = string.format("%s %s -> %s", name, base[name] or "not set",
					now[name] or "not set") }
			end
		end
	end
	return out, base, now
end

local function product(options)
	local p = 1
	for name, value in pairs(options) do
		p = BATCH[name] and tonumber(value) and p * tonumber(value) or p
	end
	return p
end

local function any_of(list, set)
	for _, c in ipairs(list) do
		if set[c.name] then
			return c
		end
	end
end

local function texts(list)
	local out = {}
	for i, c in ipairs(list) do
		out[i] = c.text
	end
	return table.concat(out, ", ")
end

local function at_arm(arm)
	return { name = arm.knob, value = arm.value, file = arm.file, line = arm.line }
end

local function refused(arm, what, write)
	local f = wrong(what, write, at_arm(arm))
	f.arm_of = arm
	return f
end

local function judge(x, arm)
	local list, base, now = changes(x, arm)
	local model, dynamics = any_of(list, MODEL), any_of(list, DYNAMICS)
	local several = #list > 1 and string.format("%d things change at once (%s): what comes out can be credited to none of "
		.. "them; and ", #list, texts(list)) or ""
	if model then
		return refused(arm, several .. string.format("%s makes another model of it: that one has a speed and a loss of its "
			.. "own, and no setting of the system was tuned", model.text), "one setting of the system at a time, of one model")
	end
	if arm.class == "optimisation" then
		return nil
	end
	local batch, all = any_of(list, BATCH), any_of(list, GLOBAL_BATCH)
	local fixed = base.global_batch_size and base.global_batch_size == now.global_batch_size
	if all or (batch and not fixed and product(base) ~= product(now)) then
		return refused(arm, several .. string.format("%s changes the samples of an optimiser step: another batch is another "
			.. "training, and class %s says that it is the same", (all or batch).text, arm.class),
			'class = "optimisation" and a guard on the loss at equal samples, or accumulation that keeps the product')
	end
	if dynamics then
		return refused(arm, several .. string.format("%s changes how training goes, and class %s says that it does not",
			dynamics.text, arm.class), 'class = "optimisation" and a guard on the loss')
	end
	local rounding = any_of(list, NUMERICS)
	if rounding and arm.class == "neutral" then
		return refused(arm, several .. string.format("%s changes rounding, and class neutral says that results are bit-equal",
			rounding.text), 'class = "numerics" and a guard on the loss')
	end
end

-- --- targets -------------------------------------------------------------------------------

local function peak_of(x)
	local m = x.campaign.model
	if m.peak_tflops then
		return m.peak_tflops
	end
	local name = m.gpu or x.gpu
	for _, p in ipairs(name and x.facts.gpu_peaks or {}) do
		if name:upper():find(p[1]:upper(), 1, true) then
			return m.dtype == "fp8" and 2 * p[2] or m.dtype == "tf32" and p[2] / 2 or p[2]
		end
	end
end

-- Tokens a second of all devices that the target stands for; nil where it is about something else.
local function tokens_per_s(x, gpus)
	local c = x.campaign
	if c.objective == "throughput_tokens_per_s" then
		return c.target
	elseif c.objective == "throughput_tokens_per_s_per_gpu" then
		return c.target * gpus
	elseif c.objective == "throughput_samples_per_s" and c.model.seq_length then
		return c.target * c.model.seq_length
	end
end

local function target(x)
	local c = x.campaign
	local gpus = (x.nodes or 1) * (x.gpus_per_node or 0)
	local peak = c.target and c.model.params and gpus > 0 and peak_of(x)
	local tokens = peak and tokens_per_s(x, gpus)
	if not tokens then
		return nil
	end
	local mfu = 6 * c.model.params * tokens / (gpus * peak * 1e12)
	local says = string.format("%g of %s on %d GPUs is %.0f %% of their peak (6 operations a parameter and token)",
		c.target, c.objective, gpus, 100 * mfu)
	local at = { name = "target", value = string.format("%g", c.target), file = c.file }
	if mfu > 1 then
		return wrong(says .. ": more than the hardware can do", string.format("at most %.4g, which is 100 %%; 50 %% is %.4g",
			c.target / mfu, c.target / mfu / 2), at)
	elseif mfu > 0.85 then
		return risky(says .. ": even the best single matrix products stay below 87 %", string.format("%.4g would be 50 %%",
			c.target / mfu / 2), at)
	end
	for _, g in ipairs(c.guards) do
		if g.name == "mfu_pct" and g.at_least and g.at_least > 103 * mfu then
			return wrong(string.format("%s, and mfu_pct is to be at least %g: for one model and one kind of device MFU goes "
				.. "as throughput does, so both cannot be meant", says, g.at_least), string.format("a target of %.4g, or %g %%",
				c.target * g.at_least / 100 / mfu, math.floor(100 * mfu)), at)
		end
	end
end

return rules {
	{ name = "model_or_batch", all = function(x)
		local out = {}
		for _, arm in ipairs(x.campaign and x.arms or {}) do
			local found = judge(x, arm)
			if found and arm.knob == "ab" then -- a comparison that somebody asked for says what it is
				found.severity, found.arm_of = "note", nil
			end
			out[#out + 1] = found
		end
		return out
	end },
	{ name = "bundle", all = function(x)
		local out = {}
		for _, arm in ipairs(x.campaign and x.arms or {}) do
			local list = arm.how == "bundle" and arm.knob ~= "ab" and changes(x, arm) or {}
			if #list > 1 and not any_of(list, MODEL) then
				out[#out + 1] = mention(string.format("%d things change at once (%s): a gain is the bundle's, and is credited to "
					.. "none of them", #list, texts(list)), "a knob for each, to learn which of them helps", at_arm(arm))
			end
		end
		return out
	end },
	{ name = "target_over_peak", all = function(x)
		return x.campaign and x.campaign.model and target(x) or nil
	end },
	{ name = "objective_utilisation", all = function(x)
		local c = x.campaign
		if c and (c.objective == "gpu_util_pct" or c.objective == "sm_active" or c.objective == "gpu_power_w") then
			return risky("high utilisation is not high performance: padding, slow kernels and waiting for a collective keep a "
				.. "device busy", "a throughput or a step time as objective", { name = "objective", value = c.objective,
				file = c.file })
		end
	end },
}
