-- SPDX-License-Identifier: MIT
-- A GPT of 0.86 billion parameters under FSDP2 (fully_shard, PyTorch 2.6 and later), one process a GPU of this machine.
return {
	command = {
		"python3", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=gpu",
		path("gpt/train.py"), "--parallel", "fsdp", "--layers", "4", "--width", "4096", "--batch-size", "4",
		"--lr", "1e-4", "--amp", "--fused-optimizer", "--documents", "512", "--cached-batches", "80", "--read-loss-late",
	},
	env = { NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,ENV" }, -- NCCL's own words on every rank
	window = { warmup_steps = 20, steps = 60 },
	metrics = { file = true },
	limits = { trial_s = 120 },
}
