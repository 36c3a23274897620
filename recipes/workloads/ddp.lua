-- SPDX-License-Identifier: MIT
-- A transformer of 0.47 billion parameters under DistributedDataParallel, one process a GPU of this machine, with
-- batches so small that reducing the gradients takes a good part of the step.
return {
	command = {
		"python3", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=gpu",
		path("ddp/train.py"), "--bucket-cap-mb", "25",
	},
	env = {
		NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,ENV", -- NCCL's own words on every rank
		TORCH_CPP_LOG_LEVEL = "INFO", TORCH_DISTRIBUTED_DEBUG = "INFO", -- and DDP's
	},
	window = { warmup_steps = 20, steps = 150 },
	metrics = { file = true },
	limits = { trial_s = 120 },
}
