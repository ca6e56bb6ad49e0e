"""Heads as operators of torch, for torch.compile and everything else that traces.

    torch.ops.fpac.forward(key, q, k, v, log_gate, weights, state, form, recent, positions, key_mask) -> o
    torch.ops.fpac.forward_state(...)                                                  -> (o, state)
    torch.ops.fpac.step(key, q, k, v, state, log_gate, weights, positions, key_mask)   -> o; state is updated
    torch.ops.fpac.update(key, k, v, state, log_gate, weights, positions, key_mask)    state is updated

A Head that is called while torch traces calls these; one that is called with plain tensors goes to C directly, which
takes a tenth of the time that an operator in Python does. `key` names an open head of this process (head.key).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import abi
from .call import STATE_DROPPED, STATE_NEW, STATE_UPDATED, Calls, Operands, find_calls
from .torch_tensors import DTYPES, TORCH, check_gradients

Results = tuple[Tensor | None, Tensor | None]

_library = torch.library.Library("fpac", "DEF")

# Compilers leave the strides of inputs as they are: the last axis has to stay contiguous. The first since torch 2.7.
_STRIDES = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)


def _like(key: str, operands: Operands) -> Results:
    """Tensors as o and the new state are, without computing."""
    q, k, state, w = operands.q, operands.k, operands.state, find_calls(key).widths
    shape = (k.shape[0], k.shape[2], w.state_elements) if state is None else state.shape
    o = None if q is None else q.new_empty((*q.shape[:3], w.dv), dtype=DTYPES[w.dtype])
    return o, k.new_empty(shape, dtype=DTYPES[w.state_dtype])


def _define(name: str, schema: str, operands: Callable[..., Operands], pick: Callable[[Results], Any]) -> None:
    """An operator: `operands` reads its arguments after the key, `pick` takes its results from o and the state."""

    def compute(key: str, *arguments: Any) -> Any:
        given = operands(*arguments)
        check_gradients(given)
        return pick(find_calls(key).run(TORCH, given))

    def fake(key: str, *arguments: Any) -> Any:
        given = operands(*arguments)
        check_gradients(given)
        return pick(_like(key, given))

    _library.define(f"{name}(str key, {schema}", tags=[_STRIDES])
    for place in ("CPU", "CUDA"):
        _library.impl(name, compute, place)
    _library.impl(name, torch.library.fallthrough_kernel, "Autograd")  # gradients are refused below it
    torch.library.register_fake(f"fpac::{name}", fake, lib=_library)


def _first(results: Results) -> Tensor | None:
    return results[0]


_tokens = "Tensor? positions=None, Tensor? key_mask=None)"
_forward = (
    "Tensor q, Tensor k, Tensor v, Tensor? log_gate, Tensor[] weights, Tensor? state, int form, int recent, " + _tokens
)
_define(
    "forward",
    f"{_forward} -> Tensor",
    lambda q, k, v, log_gate, weights, state, form, recent, *tokens: Operands(
        q, k, v, log_gate, state, tuple(weights), form, recent, STATE_DROPPED, *tokens
    ),
    _first,
)
_define(
    "forward_state",
    f"{_forward} -> (Tensor, Tensor)",
    lambda q, k, v, log_gate, weights, state, form, recent, *tokens: Operands(
        q, k, v, log_gate, state, tuple(weights), form, recent, STATE_NEW, *tokens
    ),
    lambda results: results,
)
_define(
    "step",
    "Tensor q, Tensor k, Tensor v, Tensor(a!) state, Tensor? log_gate, Tensor[] weights, "
    "Tensor? positions=None, Tensor? key_mask=None, int recent=0) -> Tensor",
    lambda q, k, v, state, log_gate, weights, positions=None, key_mask=None, recent=0: Operands(
        q, k, v, log_gate, state, tuple(weights), abi.RECURRENT, recent, STATE_UPDATED, positions, key_mask
    ),
    _first,
)
_define(
    "update",
    f"Tensor k, Tensor v, Tensor(a!) state, Tensor? log_gate, Tensor[] weights, {_tokens} -> ()",
    lambda k, v, state, log_gate, weights, *tokens: Operands(
        None, k, v, log_gate, state, tuple(weights), abi.AUTO, 0, STATE_UPDATED, *tokens
    ),
    lambda results: None,
)


def run_operator(calls: Calls, operands: Operands) -> Results:
    """Compute by the operator that fits."""
    o = operands
    key, weights, tokens = calls.key, list(o.weights), (o.positions, o.key_mask)
    rest = (o.log_gate, weights, o.state, o.form, o.recent, *tokens)
    if o.keeps == STATE_NEW:
        return torch.ops.fpac.forward_state(key, o.q, o.k, o.v, *rest)
    if o.keeps == STATE_DROPPED:
        return torch.ops.fpac.forward(key, o.q, o.k, o.v, *rest), None
    if o.q is None:
        return torch.ops.fpac.update(key, o.k, o.v, o.state, o.log_gate, weights, *tokens), None
    return torch.ops.fpac.step(key, o.q, o.k, o.v, o.state, o.log_gate, weights, *tokens, o.recent), None
