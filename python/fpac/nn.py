"""Modules of torch with a head in them.

    attention = fpac.nn.FPAttention(512, 8, "mine.lua")       # x of width 512, 8 heads
    y = attention(x)                                          # [B, L, 512], trained by autograd as any module
    y, state = attention(x, return_state=True)                # then token by token, or in pieces

docs/python.md is the manual.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from . import torch as _operators  # noqa: F401  so that torch.compile finds them
from .errors import ArgumentTypeError, InvalidError, UnsupportedError
from .heads import Head
from .initial import initialize_weight
from .layers import Layer
from .opening import head as open_text
from .opening import load
from .torch_tensors import DTYPES

__all__ = ["FPAttention", "initialize_weight"]

Spec = str | os.PathLike[str]

# Of positions, which go into the head in float32. In 16 bits 1,001 is 1,000.
_COUNTS = (torch.float32, torch.float64, torch.int32, torch.int64)


def _refuse(where: str, message: str) -> None:
    raise InvalidError(where, message)


def _check_count(name: str, count: object) -> None:
    if not isinstance(count, int) or count < 1:
        _refuse(name, f"is {count!r}, but a whole number from 1 on is needed")


def _check_head(head: Head, key_heads: int) -> None:
    """The module can give all that calls of the head need."""
    if isinstance(head, Layer):
        raise UnsupportedError(head.name, "is a layer, but FPAttention needs one head: call the layer itself")
    about = head.explain()
    if about.window:
        raise UnsupportedError(about.name, "has a window, which FPAttention does not support: call the head itself")
    if about.heads not in (0, key_heads):
        _refuse("key_heads", f"is {key_heads}, but {about.name} has constants for {about.heads}")


def _memories(shortest: float, longest: float, heads: int) -> Tensor:
    """Tokens that heads remember, in equal ratios."""
    if not 1 < shortest <= longest:
        _refuse("gate_memory", f"is ({shortest}, {longest}), but two numbers above 1 are needed, the smaller one first")
    return torch.logspace(math.log2(shortest), math.log2(longest), heads, base=2.0)


class FPAttention(nn.Module):
    """Attention by a head of a spec: projections, the head, a projection of what its heads give.

    width: of x and of the result. heads: query heads; key_heads: key and value heads, a divisor of it (None: as many).
    spec: a file (an os.PathLike, or a str that ends in .lua) or a text in Lua; name: which head, where it has several.
    The spec says the widths d and dv, scale, normaliser, gate, type and mask.

    q, k, v, out are nn.Linear, with `bias` or without. Of a gated head `gate` is one, too: the log-gate is
    logsigmoid(gate(x)), at first that of memories from gate_memory[0] to gate_memory[1] tokens, one a key head.
    Run-time matrices are Parameters weight_NAME, begun by initialize_weight. norm: RMSNorm of each head's result, with
    a weight for each of its dv columns; None: where the head has no normaliser.

    backward: False opens the head without gradients, for use under torch.no_grad(). The head is opened for the device
    of the parameters, and again when they move (`.cuda()`): compiled or taken from the cache, and verified.

    Linear projections compute in the module's type, or in autocast's; q, k and v go into the head in the head's type,
    log-gates and matrices in float32.
    """

    head: Head
    out_norm: nn.Parameter | None
    gate: nn.Linear | None

    def __init__(
        self,
        width: int,
        heads: int,
        spec: Spec,
        name: str | None = None,
        *,
        key_heads: int | None = None,
        bias: bool = False,
        norm: bool | None = None,
        gate_memory: tuple[float, float] = (16.0, 1024.0),
        backward: bool = True,
        cache_dir: Spec | None = None,
        compiler: Spec | None = None,
        log: Callable[[str], object] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        key_heads = heads if key_heads is None else key_heads
        for what, count in (("width", width), ("heads", heads), ("key_heads", key_heads)):
            _check_count(what, count)
        if heads % key_heads:
            _refuse("key_heads", f"is {key_heads}, of which heads = {heads} is no multiple")
        self.width, self.heads, self.key_heads = width, heads, key_heads
        self._backward, self._gate_memory = backward, gate_memory
        self._spec, self._name = spec, name
        self._options = {"cache_dir": cache_dir, "compiler": compiler, "log": log}
        self._opened: dict[torch.device, Head] = {}
        self._open_for(torch.empty(0, device=device).device)
        _check_head(self.head, key_heads)
        about = self.head.explain()
        make: Any = {"device": device, "dtype": dtype}
        self.q = nn.Linear(width, heads * about.d, bias=bias, **make)
        self.k = nn.Linear(width, key_heads * about.d, bias=bias, **make)
        self.v = nn.Linear(width, key_heads * about.dv, bias=bias, **make)
        self.out = nn.Linear(heads * about.dv, width, bias=bias, **make)
        self.gate = nn.Linear(width, key_heads, **make) if about.gate else None
        normed = not about.normalized if norm is None else norm
        self.out_norm = nn.Parameter(torch.empty(about.dv, **make)) if normed else None
        for weight, shape in zip(about.weight_names, about.weight_shapes):
            values = torch.empty(shape.axes(key_heads), **make)
            self.register_parameter(f"weight_{weight}", nn.Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Begin anew. From x of variance 1 come q, k and v of variance 1."""
        for linear in (self.q, self.k, self.v, self.out):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        if self.gate is not None:
            nn.init.zeros_(self.gate.weight)
            memory = _memories(*self._gate_memory, self.key_heads)
            with torch.no_grad():
                self.gate.bias.copy_((memory - 1).log())  # sigmoid gives 1 - 1 / memory
        if self.out_norm is not None:
            nn.init.ones_(self.out_norm)
        about = self.head.explain()
        for weight, shape, kind in zip(self.weights.values(), about.weight_shapes, about.weight_kinds):
            initialize_weight(weight, shape, kind)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The run-time matrices, by the names of the spec."""
        return {name: getattr(self, f"weight_{name}") for name in self.head.weight_names}

    # ---- the head, on the device where the parameters are ----

    def _open_for(self, device: torch.device) -> None:
        if device.type == "meta" and self._opened:
            return  # parameters without memory: the head that is open tells the shapes
        if device not in self._opened:
            self._opened[device] = self._open(device)
        self.head = self._opened[device]

    def _open(self, device: torch.device) -> Head:
        target = {"cpu": "c", "meta": "c", "cuda": "cuda"}.get(device.type)
        if target is None:
            raise UnsupportedError("device", f"is {device}, but heads are compiled for cpu and cuda")
        options: dict[str, Any] = {"backward": self._backward, **self._options}
        if target == "cuda":
            options["device"] = device.index or 0
        if isinstance(self._spec, str) and not self._spec.endswith(".lua"):
            return open_text(self._spec, self._name, target, **options)
        if not isinstance(self._spec, (str, os.PathLike)):
            kind = type(self._spec).__qualname__
            raise ArgumentTypeError("spec", f"is a {kind}, but a path or a text in Lua is needed")
        return load(self._spec, self._name, target, **options)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> FPAttention:
        """What .to, .cuda, .cpu and others come to."""
        super()._apply(fn, recurse)
        self._open_for(self.q.weight.device)
        return self

    # ---- what it computes ----

    def forward(
        self,
        x: Tensor,
        state: Tensor | None = None,
        return_state: bool = False,
        form: str | None = None,
        *,
        positions: Tensor | None = None,
        key_mask: Tensor | None = None,
    ) -> Any:
        """y [B, L, width] of x [B, L, width], or (y, state) with return_state.

        state: what an earlier call returned for the tokens before x's, or new_state; None: x has the first ones. It is
        not changed, and gradients go through it. form: as a head's call takes it.
        positions [B, L, n], or [B, L] where n is 1: of a head that takes them; in float32 or whole numbers. No
        gradients. key_mask [B, L] bool or uint8, True where a key takes part: of a head that takes one; None: all do.
        """
        self._check(x, state, return_state)
        tokens = self._tokens(x, positions, key_mask)
        q, k, v = self._project(x)
        given = (self._log_gate(x), list(self._matrices()), state, return_state, form)
        if not return_state:
            return self._finish(self.head(q, k, v, *given, **tokens))
        o, after = self.head(q, k, v, *given, **tokens)
        return self._finish(o), after

    def step(
        self, x: Tensor, state: Tensor, *, positions: Tensor | None = None, key_mask: Tensor | None = None
    ) -> Tensor:
        """y of the next tokens, one or a few, without gradients; the state is updated in place."""
        with torch.no_grad():
            self._check(x, state, True)
            tokens = self._tokens(x, positions, key_mask)
            q, k, v = self._project(x)
            return self._finish(self.head.step(q, k, v, state, self._log_gate(x), list(self._matrices()), **tokens))

    def new_state(self, batch: int) -> Tensor:
        """The state before the first token of so many sequences."""
        about = self.head.explain()
        shape = (batch, self.key_heads, about.state_elements)
        return torch.zeros(shape, dtype=DTYPES[about.state_dtype], device=self.q.weight.device)

    def _check(self, x: Tensor, state: Tensor | None, carries: bool) -> None:
        """Refuse what cannot be computed, before anything is."""
        weight = self.q.weight
        if x.dim() != 3 or x.shape[2] != self.width:
            _refuse("x", f"is {list(x.shape)}, but [B, L, {self.width}] is needed")
        if x.device != weight.device:
            _refuse("x", f"lies on {x.device}, but the module on {weight.device}")
        if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise ArgumentTypeError("x", f"is {x.dtype}, but the module {weight.dtype}: convert one, or use autocast")
        if not self._backward and torch.is_grad_enabled():
            raise UnsupportedError("FPAttention", "was made with backward=False: call it under torch.no_grad()")
        if (carries or state is not None) and not self.head.explain().causal:
            raise UnsupportedError("state", "needs a causal head: in this one each token sees all tokens of a call")
        if state is not None:
            self._check_state(x, state)

    def _tokens(self, x: Tensor, positions: Tensor | None, key_mask: Tensor | None) -> dict[str, Any]:
        """What calls of the head take of each token beside q, k and v. Refuses what does not fit."""
        about, axes = self.head.explain(), tuple(x.shape[:2])
        given: dict[str, Any] = {}
        if positions is not None or about.positions:
            given["positions"] = self._positions(axes, positions)
        if key_mask is None and about.key_mask:
            given["key_mask"] = torch.ones(axes, dtype=torch.bool, device=x.device)
        elif key_mask is not None:
            if not about.key_mask:
                _refuse("key_mask", f"is given, but {about.name} has no mask of keys")
            if tuple(key_mask.shape) != axes:
                _refuse("key_mask", f"is {list(key_mask.shape)}, but {list(axes)} is needed, as x has tokens")
            given["key_mask"] = key_mask
        for name, tensor in given.items():
            if tensor.device != x.device:
                _refuse(name, f"lies on {tensor.device}, but x on {x.device}")
        return given

    def _positions(self, axes: tuple[int, ...], positions: Tensor | None) -> Tensor:
        about = self.head.explain()
        if not about.positions:
            _refuse("positions", f"are given, but {about.name} has none")
        shape = (*axes, about.positions)
        if positions is None:
            raise InvalidError("positions", f"are None, but {about.name} takes them, {list(shape)}")
        if tuple(positions.shape) != shape and not (about.positions == 1 and tuple(positions.shape) == axes):
            _refuse("positions", f"are {list(positions.shape)}, but {list(shape)} is needed")
        if positions.dtype not in _COUNTS:
            raise ArgumentTypeError("positions", f"are {positions.dtype}, but float32 or whole numbers are needed")
        return positions.float()

    def _check_state(self, x: Tensor, state: Tensor) -> None:
        about = self.head.explain()
        shape = (x.shape[0], self.key_heads, about.state_elements)
        if tuple(state.shape) != shape:
            _refuse("state", f"is {list(state.shape)}, but {list(shape)} is needed (new_state({x.shape[0]}))")
        if state.dtype != DTYPES[about.state_dtype] or state.device != x.device:
            _refuse("state", f"is {state.dtype} on {state.device}, but {about.state_dtype} on {x.device} is needed")

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        dtype = DTYPES[self.head.explain().dtype]
        q, k, v = self.q(x), self.k(x), self.v(x)
        return (
            q.unflatten(-1, (self.heads, -1)).to(dtype),
            k.unflatten(-1, (self.key_heads, -1)).to(dtype),
            v.unflatten(-1, (self.key_heads, -1)).to(dtype),
        )

    def _log_gate(self, x: Tensor) -> Tensor | None:
        """In float32 also in autocast: a logit of 7, of a memory of 1,000 tokens, is off by up to 1/64 in bf16."""
        if self.gate is None:
            return None
        with torch.autocast(x.device.type, enabled=False):
            bias = self.gate.bias.float()
            return functional.logsigmoid(functional.linear(x.float(), self.gate.weight.float(), bias))

    def _matrices(self) -> list[Tensor]:
        return [weight.float() for weight in self.weights.values()]

    def _finish(self, o: Tensor) -> Tensor:
        if self.out_norm is not None:
            o = functional.rms_norm(o.float(), (o.shape[-1],), self.out_norm.float(), 1e-6)
        return self.out(o.to(self.out.weight.dtype).flatten(-2))

    def extra_repr(self) -> str:
        return f"width={self.width}, heads={self.heads}, key_heads={self.key_heads}, head={self.head!r}"
