#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A small GPT, trained on one GPU, or on several by torchrun with DDP or FSDP:

    train.py --num-workers 2 --amp
    torchrun --standalone --nproc-per-node=gpu train.py --parallel ddp --bucket-cap-mb 25

An ordinary PyTorch script that knows nothing of fettle. Text, model and loss are functions of the seed and the
step; samples come in the same order whatever the loader's settings. Without a GPU it runs over gloo in float32.

Rank 0 prints one line a step but for the first, and one JSON object a step where $FETTLE_METRICS names a file.
Checkpoints are off unless --save-every is given.
"""
import argparse
import contextlib
import json
import os
import threading
import time

import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from data import Batches, Documents
from model import HEAD_WIDTH, Model


def arguments():
    p = argparse.ArgumentParser(description="train a small GPT")
    g = p.add_argument_group("model and data")
    g.add_argument("--layers", type=int, default=8)
    g.add_argument("--width", type=int, default=768)
    g.add_argument("--context", type=int, default=512)
    g.add_argument("--batch-size", type=int, default=16, help="documents a rank and step")
    g.add_argument("--varied-lengths", action="store_true", help="batches of documents cut to different lengths")
    g.add_argument("--documents", type=int, default=2048)
    g.add_argument("--steps", type=int, default=1000)
    g.add_argument("--lr", type=float, default=3e-4)
    g.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")))
    g.add_argument("--read-loss-late", action="store_true",
                   help="when the next step is queued: the device need not wait for the host (the last has no line)")
    g = p.add_argument_group("loader")
    g.add_argument("--num-workers", type=int, default=0)
    g.add_argument("--prefetch-factor", type=int, help="batches ahead of each worker; default: torch's")
    g.add_argument("--pin-memory", action="store_true")
    g.add_argument("--cached-batches", type=int, default=0, metavar="N",
                   help="put N batches on the device before the first step, and train on them in turn")
    g = p.add_argument_group("compute")
    g.add_argument("--tf32", action="store_true", help="TF32 for float32 matrix products")
    g.add_argument("--amp", action="store_true", help="autocast to bfloat16")
    g.add_argument("--compile", nargs="?", const="default", metavar="MODE", help="torch.compile")
    g.add_argument("--fused-optimizer", action="store_true")
    g.add_argument("--recompute", action="store_true", help="activation checkpointing of every block")
    g = p.add_argument_group("parallel")
    g.add_argument("--parallel", choices=("none", "ddp", "fsdp"), default="none")
    g.add_argument("--bucket-cap-mb", type=int, default=25)
    g.add_argument("--gradient-as-bucket-view", action="store_true")
    g.add_argument("--static-graph", action="store_true")
    g.add_argument("--no-reshard-after-forward", action="store_true", help="FSDP: keep parameters for the backward pass")
    g.add_argument("--forward-prefetch", type=int, default=0, metavar="N", help="FSDP: gather N blocks ahead")
    g = p.add_argument_group("checkpoint")
    g.add_argument("--save-dir", metavar="DIR", default=os.environ.get("FETTLE_CKPT_DIR"), help="$FETTLE_CKPT_DIR")
    g.add_argument("--save-every", type=int, default=0, metavar="N", help="0: never")
    g.add_argument("--save-async", action="store_true", help="write in a thread, from a copy in host memory")
    a = p.parse_args()
    if a.width % HEAD_WIDTH:
        p.error(f"--width must be a multiple of {HEAD_WIDTH}, the width of a head")
    if a.save_every and not a.save_dir:
        p.error("--save-every needs --save-dir")
    return a


def shard(model, a):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # PyTorch 2.6 and later

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16 if a.amp else None)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy, reshard_after_forward=not a.no_reshard_after_forward)
    fully_shard(model, mp_policy=policy)
    blocks = list(model.blocks)
    for i, block in enumerate(blocks if a.forward_prefetch else []):
        block.set_modules_to_forward_prefetch(blocks[i + 1:i + 1 + a.forward_prefetch])
    return model


def build(a, vocabulary, device):
    torch.manual_seed(a.seed)
    with torch.device(device) if hasattr(torch, "set_default_device") else contextlib.nullcontext():
        model = Model(a.layers, a.width, a.context, vocabulary, a.recompute)
    model = model.to(device)
    if a.compile:
        model = torch.compile(model, mode=a.compile, dynamic=a.varied_lengths or None)
    if a.parallel == "fsdp":
        model = shard(model, a)
    elif a.parallel == "ddp":
        model = DistributedDataParallel(
            model, device_ids=[device.index] if device.type == "cuda" else None, bucket_cap_mb=a.bucket_cap_mb,
            gradient_as_bucket_view=a.gradient_as_bucket_view, static_graph=a.static_graph)
    fused = {"fused": True} if a.fused_optimizer else {}
    return model, torch.optim.AdamW(model.parameters(), lr=a.lr, **fused)


def loader(a, documents, rank):
    batches = Batches(documents, a.batch_size, a.context, a.varied_lengths, a.seed, rank)
    ahead = {} if a.prefetch_factor is None else {"prefetch_factor": a.prefetch_factor}
    return iter(DataLoader(documents, batch_sampler=batches, num_workers=a.num_workers, pin_memory=a.pin_memory, **ahead))


def batches_of(a, documents, rank, device):
    """(seconds waited, batch on the device), for ever."""
    source = loader(a, documents, rank)
    cached = [next(source).to(device) for _ in range(a.cached_batches)]
    for step in range(a.steps):
        begin = time.perf_counter()
        batch = cached[step % len(cached)] if cached else next(source)
        wait_s = time.perf_counter() - begin
        yield wait_s, batch.to(device, non_blocking=a.pin_memory)


def one_step(a, model, optimizer, batch, device):
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=a.amp):
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


class Checkpoints:
    """One file, replaced as a whole; a write in the background is waited for before the next begins."""

    def __init__(self, a, model, optimizer):
        self.a, self.model, self.optimizer, self.writer = a, model, optimizer, None

    def write(self, state):
        path = os.path.join(self.a.save_dir, "ckpt.pt")
        with open(path + ".tmp", "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".tmp", path)

    def after(self, step):
        if not self.a.save_every or step % self.a.save_every:
            return
        self.wait()
        state = {"step": step, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        if not self.a.save_async:
            self.write(state)
            return
        self.writer = threading.Thread(target=self.write, args=(on_host(state),))
        self.writer.start()

    def wait(self):
        if self.writer:
            self.writer.join()
            self.writer = None


def on_host(state):
    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return {k: on_host(v) for k, v in state.items()}
    return [on_host(v) for v in state] if isinstance(state, list) else state


class Journal:
    """One line a step, from when its loss was read to when the next one's was."""

    def __init__(self, samples, late, device):
        path = os.environ.get("FETTLE_METRICS") if rank_of() == 0 else None
        self.out = open(path, "a", encoding="utf-8") if path else None
        self.samples, self.late, self.device = samples, late, device
        self.queue, self.begin = [], time.perf_counter()

    def queued(self, *step):
        self.queue.append(step)
        if len(self.queue) > self.late:
            self.line(*self.queue.pop(0))

    def line(self, step, loss, tokens, wait_s):
        value, end = loss.item(), time.perf_counter()
        seconds, self.begin = end - self.begin, end
        if step > 1 and rank_of() == 0:  # the first has the start of everything in it
            self.write({
                "step": step, "loss": value, "step_time_ms": 1e3 * seconds, "data_wait_ms": 1e3 * wait_s,
                "data_wait_ratio": wait_s / seconds, "throughput_samples_per_s": self.samples / seconds,
                "throughput_tokens_per_s": tokens / seconds})

    def write(self, line):
        if self.device.type == "cuda":
            line["mem_peak_allocated_gib"] = torch.cuda.max_memory_allocated() / 2**30
            line["mem_peak_reserved_gib"] = torch.cuda.max_memory_reserved() / 2**30
        print(" ".join(f"{k} {v:.6g}" for k, v in line.items()), flush=True)
        if self.out:
            self.out.write(json.dumps(line) + "\n")
            self.out.flush()


def rank_of():
    return dist.get_rank() if dist.is_initialized() else 0


def ranks_of_srun():
    """What torchrun would have set, where srun started the ranks."""
    names = {"RANK": "SLURM_PROCID", "WORLD_SIZE": "SLURM_NTASKS", "LOCAL_RANK": "SLURM_LOCALID"}
    if "RANK" not in os.environ and all(n in os.environ for n in names.values()):
        os.environ.update({name: os.environ[slurm] for name, slurm in names.items()})


def start(a):
    ranks_of_srun()
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if a.tf32:
        torch.backends.cuda.matmul.allow_tf32 = True
    if a.parallel == "none":
        return device, 1
    dist.init_process_group("nccl" if cuda else "gloo")
    return device, dist.get_world_size()


def main():
    a = arguments()
    device, world = start(a)
    documents = Documents(a.documents, a.context, a.seed)
    model, optimizer = build(a, len(documents.tokeniser.ids), device)
    checkpoints, journal = Checkpoints(a, model, optimizer), Journal(a.batch_size * world, a.read_loss_late, device)
    for step, (wait_s, batch) in enumerate(batches_of(a, documents, rank_of(), device), 1):
        loss = one_step(a, model, optimizer, batch, device)
        journal.queued(step, loss, world * (batch.numel() - len(batch)), wait_s)
        checkpoints.after(step)
    checkpoints.wait()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
