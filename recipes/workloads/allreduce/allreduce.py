#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""All-reduce through PyTorch, reported in nccl-tests' table. One process a GPU, started by torchrun:

    torchrun --standalone --nproc-per-node=gpu allreduce.py --min-bytes 1048576 --max-bytes 1073741824

For each size: warm-up, then --iters calls in place, timed as a whole between two barriers; the time of
a row is the mean over the ranks. Afterwards one more call on known values is checked element by
element (#wrong, over all ranks). PyTorch reduces in place only, so the out-of-place columns are N/A.
Bus bandwidth is algorithm bandwidth times 2 (n - 1) / n (nccl-tests, doc/PERFORMANCE.md); GB is 1e9 B.

Without a GPU it runs over gloo, at CPU speed: for rehearsals.
"""
import argparse
import os
import time

import torch
import torch.distributed as dist

HEADER = """# nThread 1 nGpus 1 minBytes {lo} maxBytes {hi} step: {factor}(factor) warmup iters: {warmup} iters: {iters} agg iters: 1 validation: 1 graph: 0
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       """


def arguments():
    p = argparse.ArgumentParser(description="all-reduce through PyTorch, in nccl-tests' table")
    p.add_argument("--min-bytes", type=int, default=1 << 20)
    p.add_argument("--max-bytes", type=int, default=1 << 30)
    p.add_argument("--factor", type=int, default=4, help="from one size to the next")
    p.add_argument("--warmup", type=int, default=20)
    p.add_argument("--iters", type=int, default=100)
    a = p.parse_args()
    if a.min_bytes < 4 or a.max_bytes < a.min_bytes or a.factor < 2 or a.iters < 1 or a.warmup < 0:
        p.error("need 4 <= min-bytes <= max-bytes, factor >= 2, iters >= 1, warmup >= 0")
    return a


def settle(device):
    """Everything that was queued on every rank is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    dist.barrier()


def seconds_of(x, iters, device):
    settle(device)
    begin = time.perf_counter()
    for _ in range(iters):
        dist.all_reduce(x)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    mean = torch.tensor([(time.perf_counter() - begin) / iters], dtype=torch.float64, device=device)
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


def count_wrong(x, device):
    """Rank r puts in r + 1 everywhere: each element must become n (n + 1) / 2."""
    n = dist.get_world_size()
    x.fill_(dist.get_rank() + 1)
    dist.all_reduce(x)
    wrong = (x != n * (n + 1) / 2).sum().to(torch.int64).reshape(1).to(device)
    dist.all_reduce(wrong)
    return int(wrong.item())


def ranks_of_srun():
    """What torchrun would have set, where srun started the ranks."""
    names = {"RANK": "SLURM_PROCID", "WORLD_SIZE": "SLURM_NTASKS", "LOCAL_RANK": "SLURM_LOCALID"}
    if "RANK" not in os.environ and all(n in os.environ for n in names.values()):
        os.environ.update({name: os.environ[slurm] for name, slurm in names.items()})


def main():
    a = arguments()
    ranks_of_srun()
    cuda = torch.cuda.is_available()
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    n, first = dist.get_world_size(), dist.get_rank() == 0
    if first:
        print(HEADER.format(lo=a.min_bytes, hi=a.max_bytes, factor=a.factor, warmup=a.warmup, iters=a.iters))
    buffer = torch.empty(a.max_bytes // 4, dtype=torch.float32, device=device)
    rates, wrong, size = [], 0, a.min_bytes
    while size <= a.max_bytes:
        x = buffer[: size // 4]
        x.zero_()
        for _ in range(a.warmup):
            dist.all_reduce(x)
        s = seconds_of(x, a.iters, device)
        bad = count_wrong(x, device)
        wrong += bad
        algbw = size / s / 1e9
        rates.append(algbw * 2 * (n - 1) / n)
        if first:
            print(f"{size:12d} {size // 4:13d}     float     sum      -1" + " " * 29 +
                  f"N/A {s * 1e6:8.2f} {algbw:7.2f} {rates[-1]:7.2f} {bad:6d}", flush=True)
        size *= a.factor
    if first:
        print(f"# Out of bounds values : {wrong} {'OK' if wrong == 0 else 'FAILED'}")
        print(f"# Avg bus bandwidth    : {sum(rates) / len(rates):g} \n#", flush=True)
    dist.destroy_process_group()
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
