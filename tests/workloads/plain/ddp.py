# SPDX-License-Identifier: GPL-2.0-or-later
# Ranks over gloo, as launchers start them (tests/workloads/ranks.py N python3 ddp.py): no options, no word of fettle.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(nn.Sequential(*[nn.Linear(512, 512) for _ in range(6)]), bucket_cap_mb=2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(512, 512)
for step in range(30):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0:
        print(f"step {step} loss {loss.item():.6f}", flush=True)
dist.barrier()
