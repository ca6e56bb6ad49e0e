"""What the models learn.

A task gives batches: tokens [B, L, n], whose n embeddings are added, and targets [B, L], of which those that are
NOT_ASKED count nothing. It has held-out batches, under the names of what they measure, and the measure.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

TOP = Path(__file__).resolve().parents[2]
NOT_ASKED = -1

Batch = tuple[Tensor, Tensor]


class Recall:
    """Associative recall. Each token is a key with its value; then every key comes once more, without a value and in
    another order, to be answered by its value. There is one layer: what it recalls was in the state of its heads."""

    name, title = "recall", "Associative recall: answers that are right, of 128 pairs"
    layers, steps, tokens = 1, 800, 257
    kinds = ("linear", "mixed", "fixed8", "learned8", "power2", "fixed12", "learned12", "softmax")
    keys = values = 128  # tokens 0 .. 127 and 128 .. 255; 256 is no value
    sizes = (4, 16, 32, 64, 128)  # pairs of a sequence; 512 questions a batch
    shown = "128 pairs"
    about = f"{', '.join(map(str, sizes))} pairs of {keys} keys and {values} values; share of answers that are right"

    def batch(self, source: torch.Generator, pairs: int = 0) -> Batch:
        pairs = pairs or self.sizes[int(torch.randint(len(self.sizes), (), generator=source))]
        keys = torch.rand(512 // pairs, self.keys, generator=source).argsort(1)[:, :pairs]
        values = torch.randint(self.values, keys.shape, generator=source)
        order = torch.rand(keys.shape, generator=source).argsort(1)
        left = torch.stack([keys, self.keys + values], 2)
        right = torch.stack([keys.gather(1, order), torch.full_like(keys, self.tokens - 1)], 2)
        targets = torch.cat([torch.full_like(keys, NOT_ASKED), values.gather(1, order)], 1)
        return torch.cat([left, right], 1), targets

    def held_out(self) -> dict[str, list[Batch]]:
        source = torch.Generator().manual_seed(10**6)
        return {f"{pairs} pairs": [self.batch(source, pairs) for _ in range(4)] for pairs in self.sizes}

    @staticmethod
    def measure(logits: Tensor, targets: Tensor) -> float:
        asked = targets != NOT_ASKED
        return (logits.argmax(-1) == targets)[asked].float().mean().item()


class Text:
    """A language model of bytes, of this repository's own pages."""

    name, title = "text", "Bytes of this repository's pages: bits a byte, held out"
    layers, steps, tokens = 2, 400, 256
    kinds = ("linear_gated", "mixed_gated", "power2_gated", "fixed12_gated", "learned12_gated", "softmax")
    length, sequences, block = 256, 8, 4096
    shown = "held out"

    def __init__(self) -> None:
        pages = sorted(path for folder in ("docs", "docs/decisions") for path in (TOP / folder).glob("*.md"))
        data = b"".join(path.read_bytes() for path in pages)
        blocks = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
        blocks = blocks[: len(blocks) // self.block * self.block].view(-1, self.block)
        out = torch.arange(len(blocks)) % 10 == 9
        self.learned, self.kept = blocks[~out], blocks[out]
        digest = hashlib.sha256(data).hexdigest()[:12]
        self.about = (
            f"{len(data)} bytes of docs/*.md and docs/decisions/*.md (sha256 {digest}), every tenth 4 KiB held out"
        )

    def batch(self, source: torch.Generator) -> Batch:
        rows = torch.randint(len(self.learned), (self.sequences, 1), generator=source)
        first = torch.randint(self.block - self.length, (self.sequences, 1), generator=source)
        window = self.learned[rows, first + torch.arange(self.length + 1)]
        return window[:, :-1, None], window[:, 1:]

    def held_out(self) -> dict[str, list[Batch]]:
        windows = self.kept.unfold(1, self.length + 1, self.length).flatten(0, 1)
        return {self.shown: [(part[:, :-1, None], part[:, 1:]) for part in windows.split(2 * self.sequences)]}

    @staticmethod
    def measure(logits: Tensor, targets: Tensor) -> float:
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).item() / math.log(2)


TASKS: dict[str, type[Recall] | type[Text]] = {"recall": Recall, "text": Text}
