"""A small causal language model, whose attention is a head of heads.lua or softmax."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import fpac.nn

HEADS = Path(__file__).with_name("heads.lua")
WIDTH, COUNT, HEAD_WIDTH = 64, 2, 16


class Softmax(nn.Module):
    """torch's own attention between the projections that FPAttention has."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, COUNT * HEAD_WIDTH, bias=False) for _ in range(3))
        self.out = nn.Linear(COUNT * HEAD_WIDTH, WIDTH, bias=False)
        for linear in (self.q, self.k, self.v, self.out):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (linear(x).unflatten(-1, (COUNT, -1)).transpose(1, 2) for linear in (self.q, self.k, self.v))
        o = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(o.transpose(1, 2).flatten(-2))


def make_attention(kind: str) -> nn.Module:
    return Softmax() if kind.startswith("softmax") else fpac.nn.FPAttention(WIDTH, COUNT, HEADS, kind)


class Block(nn.Module):
    """Attention, which sees the token before beside each, and a perceptron."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.first, self.second = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.own, self.before = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(0.5 * torch.randn(WIDTH))
        self.attention = make_attention(kind)
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        y = self.own * y + self.before * functional.pad(y, (0, 0, 1, -1))
        x = x + self.attention(y)
        return x + self.perceptron(self.second(x))


class Model(nn.Module):
    """Logits [B, L, tokens] of what tokens [B, L, n] are the sum of."""

    def __init__(self, kind: str, tokens: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, WIDTH)
        self.blocks = nn.Sequential(*[Block(kind) for _ in range(layers)])
        self.norm, self.out = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, tokens)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.norm(self.blocks(self.embedding(x).sum(2))))
