#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A decoder-only transformer trained with DistributedDataParallel, one process a GPU, by torchrun:

    torchrun --standalone --nproc-per-node=gpu train.py --bucket-cap-mb 25

An ordinary PyTorch script that knows nothing of fettle. Batches are small for the size of the model, so
reducing the gradients takes a good part of the step: what is tuned here is how it overlaps with the
backward pass. Text is a fixed random Markov chain, so the loss falls from ln(vocabulary) and is a
function of seed and step.

Rank 0 prints one line a step, when the next one is queued (so the last step has none), and one JSON object a step where $FETTLE_METRICS names a file. Without a
GPU it runs over gloo in float32: for rehearsals, with a smaller model.
"""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(attention(q, k, v).transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    t = q.shape[-2]  # PyTorch 1.x
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    return scores.masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf")).softmax(-1) @ v


class Model(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.tokens, self.places = nn.Embedding(a.vocabulary, a.width), nn.Embedding(a.context, a.width)
        self.blocks = nn.ModuleList(Block(a.width, a.width // 64) for _ in range(a.layers))
        self.norm, self.head = nn.LayerNorm(a.width), nn.Linear(a.width, a.vocabulary, bias=False)

    def forward(self, x):
        h = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


class Text:
    """Batches of a Markov chain with four successors a token, on the device before the first step: drawing
    them takes hundreds of tiny kernels, whose launches would be what is measured."""

    def __init__(self, a, rank, device):
        table = torch.randint(a.vocabulary, (a.vocabulary, 4), generator=torch.Generator().manual_seed(a.seed))
        draw = torch.Generator().manual_seed(a.seed * 1000 + rank + 1)
        shape = (a.batches, a.batch_size)
        choice = torch.randint(4, (a.context, *shape), generator=draw)
        out = [torch.randint(a.vocabulary, shape, generator=draw)]
        for c in choice:
            out.append(table[out[-1], c])
        self.batches = torch.stack(out, -1).to(device)

    def batch(self, step):
        s = self.batches[step % len(self.batches)]
        return s[:, :-1], s[:, 1:]


def arguments():
    p = argparse.ArgumentParser(description="a transformer under DistributedDataParallel")
    p.add_argument("--layers", type=int, default=8)
    p.add_argument("--width", type=int, default=2048)
    p.add_argument("--context", type=int, default=512)
    p.add_argument("--vocabulary", type=int, default=16384)
    p.add_argument("--batch-size", type=int, default=4, help="sequences a GPU and step")
    p.add_argument("--batches", type=int, default=256, help="different ones, then again from the first")
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--lr", type=float, default=1e-4)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--bucket-cap-mb", type=int, default=25)
    p.add_argument("--gradient-as-bucket-view", action="store_true")
    p.add_argument("--static-graph", action="store_true")
    a = p.parse_args()
    if a.width % 64:
        p.error("--width must be a multiple of 64, the width of a head")
    return a


def build(a, device):
    torch.manual_seed(a.seed)
    with torch.device(device) if hasattr(torch, "set_default_device") else torch.no_grad():
        model = Model(a)
    model = DistributedDataParallel(
        model.to(device), device_ids=[device.index] if device.type == "cuda" else None,
        bucket_cap_mb=a.bucket_cap_mb, gradient_as_bucket_view=a.gradient_as_bucket_view,
        static_graph=a.static_graph)
    kind = {"fused": True} if device.type == "cuda" else {}
    return model, torch.optim.AdamW(model.parameters(), lr=a.lr, **kind)


def one_step(model, optimizer, x, y, device):
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), y.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def report(out, step, loss, seconds, samples, device):
    line = {"step": step, "loss": loss, "step_time_ms": 1e3 * seconds, "throughput_samples_per_s": samples / seconds}
    if device.type == "cuda":
        line["mem_peak_allocated_gib"] = torch.cuda.max_memory_allocated() / 2**30
        line["mem_peak_reserved_gib"] = torch.cuda.max_memory_reserved() / 2**30
    print(" ".join(f"{k} {v:.6g}" for k, v in line.items()), flush=True)
    if out:
        out.write(json.dumps(line) + "\n")
        out.flush()


def close_step(out, first, step, loss, begin, samples, device):
    value, end = loss.item(), time.perf_counter()
    if first:
        report(out, step, value, end - begin, samples, device)
    return end


def main():
    a = arguments()
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    first, samples = dist.get_rank() == 0, a.batch_size * dist.get_world_size()
    model, optimizer = build(a, device)
    text = Text(a, dist.get_rank(), device)
    path = os.environ.get("FETTLE_METRICS") if first else None
    out = open(path, "a", encoding="utf-8") if path else None
    before, begin = None, time.perf_counter()
    for step in range(1, a.steps + 1):
        loss = one_step(model, optimizer, *text.batch(step), device)
        if before is not None:  # waits for the step before, while this one is already queued
            begin = close_step(out, first, step - 1, before, begin, samples, device)
        before = loss
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
