-- SPDX-License-Identifier: MIT
-- All-reduce through PyTorch and NCCL on every GPU of this machine, 64 MiB to 1 GiB, in nccl-tests' table.
return {
	command = {
		"python3", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=gpu",
		path("allreduce/allreduce.py"), "--min-bytes", "67108864", "--max-bytes", "1073741824", "--factor", "2",
	},
	env = { NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,ENV" }, -- what NCCL acknowledges is the proof
	metrics = { probe = "nccl_tests" },
	limits = { trial_s = 120 },
}
