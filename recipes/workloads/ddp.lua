-- SPDX-License-Identifier: MIT
-- A GPT of 0.86 billion parameters under DistributedDataParallel, one process a GPU of this machine, with batches
-- so small that reducing the gradients takes a good part of the step. Four wide layers: enough work in each kernel
-- that the host, which launches them, is never what is waited for.
return {
	command = {
		"python3", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=gpu",
		path("gpt/train.py"), "--parallel", "ddp", "--layers", "4", "--width", "4096", "--batch-size", "4",
		"--lr", "1e-4", "--amp", "--fused-optimizer", "--documents", "512", "--cached-batches", "80", "--read-loss-late",
		"--bucket-cap-mb", "25",
	},
	env = {
		NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,ENV", -- NCCL's own words on every rank
		TORCH_CPP_LOG_LEVEL = "INFO", TORCH_DISTRIBUTED_DEBUG = "INFO", -- and DDP's
	},
	window = { warmup_steps = 20, steps = 60 },
	metrics = { file = true },
	limits = { trial_s = 120 },
}
