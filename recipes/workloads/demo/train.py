#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The workload of the demo: a small CNN trained on CPU from compressed shards on disk.

An ordinary PyTorch script that knows nothing of fettle. Every sample is read from its shard,
inflated, transformed back and augmented in Dataset.__getitem__, so with the default of no workers
the training step waits for decoding. The loss is a function of the seed and the step: samples come
in the order of the seed, and the augmentation of a sample depends on the epoch and its index, never
on the worker that decodes it.

One line a step on stdout:
    step 7 loss 2.13054 step_time_ms 58.113 data_wait_ms 21.940 throughput_samples_per_s 550.65
and, where $FETTLE_METRICS names a file, one JSON object a step. step_time_ms is the whole step,
data_wait_ms the part of it spent in next(loader).

Checkpoints are off unless --save-every is given; with --ckpt-dir the script resumes from what is
there.
"""
import argparse
import json
import os
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

CROP, BLOCK = 64, 8
INDEX = np.dtype([("offset", "<u8"), ("bytes", "<u4"), ("label", "<u4")])


class Shards(Dataset):
    """Samples of the directory that make_dataset.py wrote, decoded when asked for."""

    def __init__(self, directory, seed):
        with open(os.path.join(directory, "manifest.json"), encoding="utf-8") as f:
            manifest = json.load(f)
        if manifest["format"] != "fettle.demo-data/1":
            raise SystemExit(f"train: {directory} holds {manifest['format']}, not fettle.demo-data/1")
        self.side, self.channels, self.classes = (manifest[k] for k in ("side", "channels", "classes"))
        self.seed = seed
        self.paths, indices, shard = [], [], []
        for number, entry in enumerate(manifest["shards"]):
            stem = os.path.join(directory, f"shard-{number:03d}")
            self.paths.append(stem + ".bin")
            indices.append(np.fromfile(stem + ".idx", INDEX))
            shard.append(np.full(entry["samples"], number))
        self.index, self.shard = np.concatenate(indices), np.concatenate(shard)
        self.fds = {}
        k = np.arange(BLOCK)
        dct = np.cos(np.pi * (2 * k[None, :] + 1) * k[:, None] / (2 * BLOCK)) * np.sqrt(2 / BLOCK)
        dct[0] *= np.sqrt(0.5)
        self.dct = dct.astype(np.float32)
        self.quant = (9.0 + 2.0 * (k[:, None] + k[None, :])).astype(np.float32)

    def __len__(self):
        return len(self.index)

    def read(self, i):
        """The deflated record. Files are opened by the process that reads them, after any fork."""
        key = (os.getpid(), int(self.shard[i]))
        if key not in self.fds:
            self.fds[key] = os.open(self.paths[self.shard[i]], os.O_RDONLY)
        entry = self.index[i]
        return os.pread(self.fds[key], int(entry["bytes"]), int(entry["offset"]))

    def decode(self, record):
        """Inflate, dequantise, inverse cosine transform: a picture of float32, C x H x W."""
        n = self.side // BLOCK
        planar = np.frombuffer(zlib.decompress(record), np.int8)
        coefficients = planar.reshape(BLOCK, BLOCK, self.channels, n, n).transpose(2, 3, 4, 0, 1)
        blocks = self.dct.T @ (coefficients * self.quant) @ self.dct
        return blocks.transpose(0, 1, 3, 2, 4).reshape(self.channels, self.side, self.side)

    def __getitem__(self, key):
        epoch, i = key
        image = self.decode(self.read(i))
        # A generator of its own for each sample: the same crop whoever decodes it.
        draw = np.random.Generator(np.random.Philox(key=[self.seed, epoch * len(self) + i]))
        top, left = draw.integers(0, self.side - CROP + 1, 2)
        image = image[:, top:top + CROP, left:left + CROP]
        if draw.integers(0, 2):
            image = image[:, ::-1]
        image = (image - image.mean()) / (image.std() + 1e-3)
        return torch.from_numpy(np.ascontiguousarray(image)), int(self.index[i]["label"])


class EpochOrder(Sampler):
    """(epoch, index) for every sample of an epoch, shuffled by the seed, starting at a batch."""

    def __init__(self, n, seed):
        self.n, self.seed, self.epoch, self.skip = n, seed, 0, 0

    def __len__(self):
        return self.n - self.skip

    def __iter__(self):
        order = np.random.Generator(np.random.Philox(key=[self.seed, self.epoch])).permutation(self.n)
        return iter([(self.epoch, int(i)) for i in order[self.skip:]])


def model(channels, classes):
    def stage(a, b, stride):
        return [nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]

    return nn.Sequential(*stage(channels, 24, 2), *stage(24, 48, 2), *stage(48, 96, 2),
                         *stage(96, 96, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(96, classes))


def batches(loader, order, batch_size, first_step):
    """Batches for ever, from the one that step first_step + 1 needs; yields (wait_s, batch)."""
    per_epoch = order.n // batch_size
    order.epoch, order.skip = first_step // per_epoch, first_step % per_epoch * batch_size
    while True:
        begin = time.perf_counter()  # starting the workers is waiting for data, too
        iterator = iter(loader)
        while (batch := next(iterator, None)) is not None:
            yield time.perf_counter() - begin, batch
            begin = time.perf_counter()
        order.epoch, order.skip = order.epoch + 1, 0


def save(path, net, optimiser, step):
    tmp = f"{path}.tmp.{os.getpid()}"
    with open(tmp, "wb") as f:
        torch.save({"step": step, "net": net.state_dict(), "optimiser": optimiser.state_dict()}, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(tmp, path)


def restore(path, net, optimiser):
    """The step that the checkpoint was saved after; 0 when there is none."""
    if path is None or not os.path.exists(path):
        return 0
    state = torch.load(path)
    net.load_state_dict(state["net"])
    optimiser.load_state_dict(state["optimiser"])
    print(f"resumed from {path} after step {state['step']}", flush=True)
    return state["step"]


def report(out, step, loss, step_s, wait_s, samples):
    """The line for people and, where somebody asked for it, the object for programs."""
    values = {"step": step, "loss": loss, "step_time_ms": step_s * 1e3, "data_wait_ms": wait_s * 1e3,
              "data_wait_ratio": wait_s / step_s, "throughput_samples_per_s": samples / step_s}
    print(f"step {step} loss {loss:.6f} step_time_ms {values['step_time_ms']:.3f} "
          f"data_wait_ms {values['data_wait_ms']:.3f} "
          f"throughput_samples_per_s {values['throughput_samples_per_s']:.2f}", flush=True)
    if out is not None:
        json.dump({**values, "rank": int(os.environ.get("RANK", "0"))}, out)
        out.write("\n")
        out.flush()


def arguments():
    def switch(text):
        if text.lower() not in ("true", "false"):
            raise argparse.ArgumentTypeError(f"want true or false, not {text!r}")
        return text.lower() == "true"

    p = argparse.ArgumentParser(description="Train a small CNN on CPU from compressed shards.")
    p.add_argument("--data", required=True, metavar="DIR", help="what make_dataset.py wrote")
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, help="torch.set_num_threads; default: torch's own choice")
    p.add_argument("--num-workers", type=int, default=0)
    p.add_argument("--prefetch-factor", type=int, help="batches ahead of each worker; default: torch's")
    p.add_argument("--pin-memory", type=switch, nargs="?", const=True, default=False)
    p.add_argument("--persistent-workers", type=switch, nargs="?", const=True, default=False)
    p.add_argument("--ckpt-dir", metavar="DIR", help="resume from DIR/ckpt.pt if it is there")
    p.add_argument("--save-every", type=int, default=0, metavar="N", help="0: never")
    return p.parse_args()


def train(args, out):
    data = Shards(args.data, args.seed)
    if len(data) < args.batch_size:
        raise SystemExit(f"train: a batch of {args.batch_size} needs more than {len(data)} samples")
    order = EpochOrder(len(data), args.seed)
    ahead = {} if args.prefetch_factor is None else {"prefetch_factor": args.prefetch_factor}
    loader = DataLoader(data, args.batch_size, sampler=order, num_workers=args.num_workers,
                        pin_memory=args.pin_memory, persistent_workers=args.persistent_workers,
                        drop_last=True, **ahead)
    net = model(data.channels, data.classes)
    optimiser = torch.optim.SGD(net.parameters(), args.lr, momentum=0.9)
    ckpt = args.ckpt_dir and os.path.join(args.ckpt_dir, "ckpt.pt")
    step = restore(ckpt, net, optimiser)
    print(f"threads {torch.get_num_threads()} workers {args.num_workers} batch_size {args.batch_size} "
          f"samples {len(data)}", flush=True)

    begin = time.perf_counter()
    for wait_s, (images, labels) in batches(loader, order, args.batch_size, step):
        loss = nn.functional.cross_entropy(net(images), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        step, value = step + 1, loss.item()
        end = time.perf_counter()
        report(out, step, value, end - begin, wait_s, args.batch_size)
        if ckpt and args.save_every and step % args.save_every == 0:
            save(ckpt, net, optimiser, step)
        if step >= args.steps:
            break
        begin = time.perf_counter() if ckpt and args.save_every else end


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    metrics = os.environ.get("FETTLE_METRICS")
    if metrics:
        with open(metrics, "a", encoding="utf-8") as out:
            train(args, out)
    else:
        train(args, None)


if __name__ == "__main__":
    main()
