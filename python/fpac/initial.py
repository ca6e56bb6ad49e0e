"""How a head's run-time matrices begin, and what each of them is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .explanation import Explanation, WeightShape
from .heads import Head
from .torch_tensors import DTYPES

_TOKENS = 8  # of the calls that tell what a matrix is
_NEAR = 5e-3  # of a result: more than f16 and bf16 round where coordinates are nearly the same
_LONGEST = 10_000  # units of position in which the slowest of a head's angles turns by one radian, nearly


def _orthogonal(made: Tensor) -> None:
    rows, columns = made.shape
    nn.init.orthogonal_(made, gain=(columns / min(rows, columns)) ** 0.25)


def _diagonal(made: Tensor) -> None:
    square = made.uniform_(0.5, 1.5)  # alike, two of a term would stay alike
    made.copy_((square / square.square().mean().sqrt()).sqrt())


def _projection(made: Tensor) -> None:
    _orthogonal(made) if made.dim() == 2 else _diagonal(made)


def _affine(made: Tensor) -> None:
    _orthogonal(made[:, :-1])
    nn.init.zeros_(made[:, -1])


def _angle(made: Tensor) -> None:
    """10000^(-i / rows) for row i, as rotary embeddings have it; of several numbers in a random direction."""
    rows, numbers = made.shape
    speed = _LONGEST ** -(torch.arange(rows, device=made.device) / rows)
    direction = torch.ones_like(made) if numbers == 1 else nn.functional.normalize(nn.init.normal_(made), dim=1)
    made.copy_(speed[:, None] * direction)


# What a matrix is, and how it begins.
_BEGIN: dict[str, Callable[[Tensor], object]] = {
    "projection": _projection,
    "affine": _affine,  # a projection whose last column is added
    "angle": _angle,  # the others are of coordinates with positions
    "phase": nn.init.zeros_,
    "amplitude": nn.init.ones_,
}


def initialize_weight(weight: Tensor, shape: WeightShape, role: str = "projection") -> None:
    """Begin a run-time matrix. role: what it is, as weight_roles tells.

    A projection begins so that its branch has the scale of q.k, whatever the number of its rows. Of independent q and k
    whose entries have variance 1, (W q).(W k) has the variance |W'W|^2 (the sum of squares of W'W), and q.k has d. A
    matrix [r, d] is c times one with orthonormal rows, of columns where r > d, with c^4 = d / min(r, d); a diagonal has
    random g with the sum of g^4 = d. Then |W'W|^2 = d exactly. Of an "affine" one the column that is added is 0.

    Angles of a position are those of rotary embeddings, phases 0, amplitudes 1.
    """
    with torch.no_grad():
        for one in weight if shape.per_head else (weight,):
            made = torch.empty_like(one, dtype=torch.float32)  # there is no decomposition of 16-bit numbers
            _BEGIN[role](made)
            one.copy_(made)


def weight_roles(head: Head, key_heads: int) -> tuple[str, ...]:
    """What each run-time matrix is, in the order of weight_names: a key of _BEGIN.

    Shapes tell projections. Which of a coordinate's matrices is which the head itself tells: at position 0 nothing
    depends on an angle, and a phase may be any number of turns more.
    """
    about = head.explain()
    ask = _Asked(head, about, key_heads)
    return tuple(_role(ask, i, shape) for i, shape in enumerate(about.weight_shapes))


def _role(ask: _Asked, index: int, shape: WeightShape) -> str:
    about = ask.about
    if about.positions and shape.columns in (1, about.positions):
        if ask.change(index, 1) == 0:
            return "angle"
        if shape.columns == 1 and about.d > 1:
            return "phase" if ask.change(index, 2 * math.pi) < _NEAR < ask.change(index, 1) else "amplitude"
    return "affine" if shape.columns == about.d + 1 else "projection"


class _Asked:
    """Calls of a head at position 0, with the same numbers but for one matrix."""

    def __init__(self, head: Head, about: Explanation, key_heads: int) -> None:
        self.head, self.about = head, about
        self.device = torch.device("cuda", about.device) if about.target.startswith("cuda") else torch.device("cpu")
        self._make: Any = {"generator": torch.Generator().manual_seed(1), "device": "cpu"}  # torch's own is the user's
        dtype = DTYPES[about.dtype]
        self.q, self.k, self.v = (
            torch.randn((1, _TOKENS, key_heads, width), **self._make).to(self.device, dtype)
            for width in (about.d, about.d, about.dv)
        )
        self.weights = [
            (torch.rand(shape.axes(key_heads), **self._make) + 0.5).to(self.device) for shape in about.weight_shapes
        ]

    def _call(self, weights: list[Tensor]) -> Tensor:
        about, axes = self.about, (1, _TOKENS)
        make: Any = {"device": self.device}
        with torch.no_grad():
            return self.head(
                self.q, self.k, self.v, torch.zeros(*axes, self.k.shape[2], **make) if about.gate else None, weights,
                positions=torch.zeros(*axes, about.positions, **make) if about.positions else None,
                key_mask=torch.ones(axes, dtype=torch.bool, **make) if about.key_mask else None,
            ).float()  # fmt: skip

    def change(self, index: int, much: float) -> float:
        """Of the result, relative, with `much` times other whole numbers added to the rows of a matrix."""
        rows = self.weights[index].shape[-2]
        more = much * 2.0 ** (torch.arange(rows, device=self.device)[:, None] % 5)
        other = [weight + more if i == index else weight for i, weight in enumerate(self.weights)]
        before = self._call(self.weights)
        return float((self._call(other) - before).norm() / before.norm())
