-- SPDX-License-Identifier: MIT
-- A GPT of 64 million parameters on one GPU (or, slowly, on CPUs), in float32 as PyTorch's defaults have it. Its
-- documents are inflated and tokenised in Python when they are asked for.
return {
	command = { "python3", path("gpt/train.py"), "--num-workers", "0" },
	window = { warmup_steps = 15, steps = 60 },
	metrics = { file = true },
	limits = { trial_s = 120 },
}
