#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make the data set of the demo: synthetic pictures in compressed shards, once.

Each record is a small JPEG in spirit: three planes of 96 x 96, cut into blocks of 8 x 8, cosine
transformed, quantised to int8 and deflated. Reading one costs real decoding work, as pictures do.

    make_dataset.py --out DIR [--samples N] [--shards N] [--seed N] [--verify]

DIR appears whole or not at all: it is written beside itself and renamed. The content is a function
of the arguments; manifest.json holds them with the SHA-256 of every file. When DIR already holds
what was asked for, nothing is done.
"""
import argparse
import hashlib
import json
import os
import shutil
import sys
import time
import zlib

import numpy as np

FORMAT = "fettle.demo-data/1"
SIDE, CHANNELS, CLASSES = 96, 3, 10
BLOCK = 8
LEVEL = 6  # deflate's default: what most tools write
INDEX = np.dtype([("offset", "<u8"), ("bytes", "<u4"), ("label", "<u4")])


def dct_matrix():
    """The orthonormal DCT-II of length 8: rows are frequencies."""
    k = np.arange(BLOCK)
    m = np.cos(np.pi * (2 * k[None, :] + 1) * k[:, None] / (2 * BLOCK)) * np.sqrt(2 / BLOCK)
    m[0] *= np.sqrt(0.5)
    return m


def quantiser():
    """Coarser for higher frequencies, as in JPEG; the smallest step keeps the mean in int8."""
    k = np.arange(BLOCK)
    return 9.0 + 2.0 * (k[:, None] + k[None, :])


def picture(rng, label):
    """A grating whose angle and period belong to its class, at a random phase, under noise."""
    y, x = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    angle = np.pi * label / CLASSES
    period = 4 + 2 * (label % 3)
    planes = np.empty((CHANNELS, SIDE, SIDE))
    for c in range(CHANNELS):
        phase = 2 * np.pi * rng.random()
        wave = np.sin(2 * np.pi * period * (x * np.cos(angle) + y * np.sin(angle)) + phase)
        planes[c] = 40 * wave * (0.5 + 0.5 * rng.random())
    # A mean of uniform bytes: unlike normal(), integers() keeps its stream between releases of numpy.
    noise = rng.integers(0, 256, (4, CHANNELS, SIDE, SIDE), dtype=np.uint8).mean(axis=0) - 127.5
    return np.clip(planes + 0.8 * noise, -127, 127)


def encode(planes, dct, quant):
    n = SIDE // BLOCK
    blocks = planes.reshape(CHANNELS, n, BLOCK, n, BLOCK).transpose(0, 1, 3, 2, 4)
    coefficients = np.rint(dct @ blocks @ dct.T / quant)
    # Frequency first: equal frequencies lie together, which is what deflate wants.
    planar = np.clip(coefficients, -127, 127).astype(np.int8).transpose(3, 4, 0, 1, 2)
    return zlib.compress(planar.tobytes(), LEVEL)


def write_shard(directory, number, count, seed):
    rng = np.random.Generator(np.random.PCG64([seed, number]))
    dct, quant = dct_matrix(), quantiser()
    index = np.zeros(count, INDEX)
    parts, offset = [], 0
    for i in range(count):
        label = int(rng.integers(0, CLASSES))
        record = encode(picture(rng, label), dct, quant)
        index[i] = (offset, len(record), label)
        parts.append(record)
        offset += len(record)
    files = []
    for suffix, data in ((".bin", b"".join(parts)), (".idx", index.tobytes())):
        name = f"shard-{number:03d}{suffix}"
        with open(os.path.join(directory, name), "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        files.append({"file": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    return {"samples": count, "files": files}


def read_manifest(directory):
    try:
        with open(os.path.join(directory, "manifest.json"), encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def fault(directory, manifest, wanted, verify):
    """Why the directory is not what was asked for, or None."""
    if manifest.get("format") != FORMAT:
        return f"its format is {manifest.get('format')!r}, not {FORMAT!r}"
    for key, value in wanted.items():
        if manifest.get(key) != value:
            return f"its {key} is {manifest.get(key)}, not {value}"
    for entry in (e for s in manifest["shards"] for e in s["files"]):
        path = os.path.join(directory, entry["file"])
        if not os.path.isfile(path) or os.path.getsize(path) != entry["bytes"]:
            return f"{entry['file']} is missing or has another size"
        if verify:
            with open(path, "rb") as f:
                if hashlib.sha256(f.read()).hexdigest() != entry["sha256"]:
                    return f"{entry['file']} has another SHA-256 than the manifest says"
    return None


def sync_directory(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def make(out, wanted):
    """Write everything beside `out`, then rename: a second writer that comes late gives way."""
    tmp = f"{out}.tmp.{os.getpid()}"
    os.makedirs(tmp)
    try:
        n, k = wanted["samples"], wanted["shards_wanted"]
        counts = [n // k + (i < n % k) for i in range(k)]
        shards = [write_shard(tmp, i, c, wanted["seed"]) for i, c in enumerate(counts)]
        hashes = "".join(e["sha256"] for s in shards for e in s["files"])
        manifest = {"format": FORMAT, **wanted, "side": SIDE, "channels": CHANNELS,
                    "classes": CLASSES, "shards": shards,
                    "sha256": hashlib.sha256(hashes.encode()).hexdigest()}
        with open(os.path.join(tmp, "manifest.json"), "w", encoding="utf-8") as f:
            json.dump(manifest, f, indent=1)
            f.write("\n")
            f.flush()
            os.fsync(f.fileno())
        sync_directory(tmp)
        try:
            os.rename(tmp, out)
        except OSError:
            if read_manifest(out) is None:
                raise
        sync_directory(os.path.dirname(os.path.abspath(out)))
        return manifest
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description="Make the data set of the demo.")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--samples", type=int, default=3072)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verify", action="store_true", help="check the SHA-256 of what is there")
    args = parser.parse_args()
    if not 1 <= args.shards <= args.samples <= 1_000_000:
        parser.error("need 1 <= --shards <= --samples <= 1000000")
    out = args.out.rstrip("/")
    wanted = {"samples": args.samples, "shards_wanted": args.shards, "seed": args.seed}

    manifest = read_manifest(out)
    if manifest is not None:
        why = fault(out, manifest, wanted, args.verify)
        if why:
            sys.exit(f"make_dataset: {out} is there, but {why}; name another directory or remove it")
        print(f"data set {manifest['sha256'][:16]} is already in {out}")
        return
    if os.path.exists(out) and os.listdir(out):
        sys.exit(f"make_dataset: {out} is not empty and holds no manifest.json; name another directory")
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    begin = time.monotonic()
    manifest = make(out, wanted)
    size = sum(e["bytes"] for s in manifest["shards"] for e in s["files"])
    print(f"data set {manifest['sha256'][:16]}: {args.samples} samples, {size / 1e6:.1f} MB in "
          f"{out}, made in {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    main()
