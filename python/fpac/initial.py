"""How a head's run-time matrices begin."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .explanation import WeightShape

_LONGEST = 10_000  # units of position in which the slowest of a head's angles turns by one radian, nearly


def _orthogonal(made: Tensor) -> None:
    rows, columns = made.shape
    nn.init.orthogonal_(made, gain=(columns / min(rows, columns)) ** 0.25)


def _diagonal(made: Tensor) -> None:
    square = made.uniform_(0.5, 1.5)  # alike, two of a term would stay alike
    made.copy_((square / square.square().mean().sqrt()).sqrt())


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
    "projection": _orthogonal,
    "diagonal": _diagonal,
    "affine": _affine,  # a projection whose last column is added
    "angle": _angle,  # the others are of coordinates with positions
    "phase": nn.init.zeros_,
    "amplitude": nn.init.ones_,
}


def initialize_weight(weight: Tensor, shape: WeightShape, kind: str | None = None) -> None:
    """Begin a run-time matrix. kind: what it is (Explanation.weight_kinds); None: a projection, or a diagonal.

    A projection begins so that its branch has the scale of q.k, whatever the number of its rows. Of independent q and k
    whose entries have variance 1, (W q).(W k) has the variance |W'W|^2 (the sum of squares of W'W), and q.k has d. A
    matrix [r, d] is c times one with orthonormal rows, of columns where r > d, with c^4 = d / min(r, d); a diagonal has
    random g with the sum of g^4 = d. Then |W'W|^2 = d exactly. Of an "affine" one the column that is added is 0.

    Angles of a position are those of rotary embeddings, phases 0, amplitudes 1.
    """
    with torch.no_grad():
        for one in weight if shape.per_head else (weight,):
            made = torch.empty_like(one, dtype=torch.float32)  # there is no decomposition of 16-bit numbers
            _BEGIN[kind or ("projection" if shape.columns else "diagonal")](made)
            one.copy_(made)
