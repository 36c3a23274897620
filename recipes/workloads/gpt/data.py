# SPDX-License-Identifier: MIT
"""Text to train on: documents of a made-up language, kept deflated and tokenised when they are asked for.

Words are made of syllables, and each pair of syllables has four successors, drawn from the seed: something to
learn, so the loss falls. Tokenising is byte-pair encoding in Python, word by word, as small projects do it: a
few milliseconds a document, which is what a DataLoader's workers are for.
"""
import zlib

import torch
from torch.utils.data import Dataset

SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]  # 70
SUCCESSORS, LONGEST_WORD = 4, 3  # of a pair of syllables; pairs in a word


class Tokeniser:
    """Byte-pair encoding whose merges are known: letters to syllables, syllables to pairs of them."""

    def __init__(self):
        self.pieces = sorted(set("".join(SYLLABLES))) + SYLLABLES
        self.ranks = {(s[0], s[1]): i for i, s in enumerate(SYLLABLES)}
        self.pairs = [a + b for a in SYLLABLES for b in SYLLABLES]
        for a in SYLLABLES:
            for b in SYLLABLES:
                self.ranks[(a, b)] = len(self.ranks)
        self.ids = {p: i for i, p in enumerate(self.pieces + self.pairs)}

    def merge(self, word):
        parts = list(word)
        while len(parts) > 1:
            ranked = [self.ranks.get(p, len(self.ranks)) for p in zip(parts, parts[1:])]
            best = min(ranked)
            if best == len(self.ranks):
                break
            i = ranked.index(best)
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        return parts

    def encode(self, text):
        return [self.ids[p] for word in text.split() for p in self.merge(word)]


class Documents(Dataset):
    """Documents of `length` + 1 tokens each, the last being the last token's target. An item is asked for by (number,
    length wanted) and is a function of the seed and that key alone, whichever worker makes it."""

    def __init__(self, count, length, seed):
        self.tokeniser = Tokeniser()
        draw = torch.Generator().manual_seed(seed)
        n = len(self.tokeniser.pairs)
        after = torch.randint(n, (n, SUCCESSORS), generator=draw)
        chain = [torch.randint(n, (count,), generator=draw)]
        for choice in torch.randint(SUCCESSORS, (length, count), generator=draw):
            chain.append(after[chain[-1], choice])
        ends = torch.randint(1, LONGEST_WORD + 1, (count, length + 1), generator=draw)
        self.deflated = [zlib.compress(self.text(c, e).encode())
                         for c, e in zip(torch.stack(chain, 1).tolist(), ends.tolist())]

    def text(self, chain, ends):
        """Pairs of syllables as words of one to three pairs."""
        words, at = [], 0
        for size in ends:
            words.append("".join(self.tokeniser.pairs[i] for i in chain[at:at + size]))
            at += size
        return " ".join(words)

    def __len__(self):
        return len(self.deflated)

    def __getitem__(self, key):
        number, length = key
        return torch.tensor(self.tokeniser.encode(zlib.decompress(self.deflated[number]).decode())[:length + 1])


class Batches:
    """Which documents make which batch, for ever; every rank its own. Where lengths vary, those of one batch are
    equal, as after grouping by length."""

    def __init__(self, documents, size, length, varied, seed, rank):
        self.n, self.size, self.length, self.varied = len(documents), size, length, varied
        self.seed = seed * 1000 + rank + 1

    def __iter__(self):
        draw = torch.Generator().manual_seed(self.seed)
        while True:
            for numbers in torch.randperm(self.n, generator=draw).split(self.size):
                least = self.length // 8 if self.varied else self.length
                length = int(torch.randint(least, self.length + 1, (1,), generator=draw))
                if len(numbers) == self.size:
                    yield [(i, length) for i in numbers.tolist()]
