"""Heads as operators of torch, for torch.compile and everything else that traces.

    torch.ops.fpac.forward(key, q, k, v, log_gate, weights, state, form, recent) -> o
    torch.ops.fpac.forward_state(...)                                            -> (o, state)
    torch.ops.fpac.step(key, q, k, v, state, log_gate, weights)                  -> o; state is updated
    torch.ops.fpac.update(key, k, v, state, log_gate, weights)                   state is updated

A Head that is called while torch traces calls these; one that is called with plain tensors goes to C directly, which
takes a tenth of the time that an operator in Python does. `key` names an open head of this process (head.key).
"""

from __future__ import annotations

import torch
from torch import Tensor

from . import abi
from .call import STATE_DROPPED, STATE_NEW, STATE_UPDATED, Calls, Operands, find_calls
from .torch_tensors import DTYPES, TORCH, check_gradients

_library = torch.library.Library("fpac", "DEF")

# What the operators compute

_forward_arguments = (
    "(str key, Tensor q, Tensor k, Tensor v, Tensor? log_gate, Tensor[] weights, Tensor? state, int form, int recent)"
)
_library.define(f"forward{_forward_arguments} -> Tensor")
_library.define(f"forward_state{_forward_arguments} -> (Tensor, Tensor)")
_library.define(
    "step(str key, Tensor q, Tensor k, Tensor v, Tensor(a!) state, Tensor? log_gate, Tensor[] weights) -> Tensor"
)
_library.define("update(str key, Tensor k, Tensor v, Tensor(a!) state, Tensor? log_gate, Tensor[] weights) -> ()")


def _run(key: str, operands: Operands) -> tuple[Tensor | None, Tensor | None]:
    check_gradients(operands)
    return find_calls(key).run(TORCH, operands)


def _forward(key, q, k, v, log_gate, weights, state, form, recent):
    return _run(key, Operands(q, k, v, log_gate, state, tuple(weights), form, recent, STATE_DROPPED))[0]


def _forward_state(key, q, k, v, log_gate, weights, state, form, recent):
    return _run(key, Operands(q, k, v, log_gate, state, tuple(weights), form, recent, STATE_NEW))


def _step(key, q, k, v, state, log_gate, weights):
    return _run(key, Operands(q, k, v, log_gate, state, tuple(weights), abi.RECURRENT, 0, STATE_UPDATED))[0]


def _update(key, k, v, state, log_gate, weights):
    _run(key, Operands(None, k, v, log_gate, state, tuple(weights), abi.AUTO, 0, STATE_UPDATED))


# Shapes, without computing


def _like(key: str, operands: Operands) -> tuple[Tensor | None, Tensor]:
    """Tensors as o and the new state."""
    check_gradients(operands)
    q, k, state, w = operands.q, operands.k, operands.state, find_calls(key).widths
    shape = (k.shape[0], k.shape[2], w.state_elements) if state is None else state.shape
    o = None if q is None else q.new_empty((*q.shape[:3], w.dv), dtype=DTYPES[w.dtype])
    return o, k.new_empty(shape, dtype=DTYPES[w.state_dtype])


def _fake_forward(key, q, k, v, log_gate, weights, state, form, recent):
    return _like(key, Operands(q, k, v, log_gate, state, tuple(weights), form, recent, STATE_DROPPED))[0]


def _fake_forward_state(key, q, k, v, log_gate, weights, state, form, recent):
    return _like(key, Operands(q, k, v, log_gate, state, tuple(weights), form, recent, STATE_NEW))


def _fake_step(key, q, k, v, state, log_gate, weights):
    return _like(key, Operands(q, k, v, log_gate, state, tuple(weights), abi.RECURRENT, 0, STATE_UPDATED))[0]


def _fake_update(key, k, v, state, log_gate, weights):
    check_gradients(Operands(None, k, v, log_gate, state, tuple(weights), abi.AUTO, 0, STATE_UPDATED))


for _name, _compute, _fake in (
    ("forward", _forward, _fake_forward),
    ("forward_state", _forward_state, _fake_forward_state),
    ("step", _step, _fake_step),
    ("update", _update, _fake_update),
):
    _library.impl(_name, _compute, "CPU")
    _library.impl(_name, _compute, "CUDA")
    _library.impl(_name, torch.library.fallthrough_kernel, "Autograd")  # gradients are refused below
    torch.library.register_fake(f"fpac::{_name}", _fake, lib=_library)


def run_operator(calls: Calls, operands: Operands) -> tuple[Tensor | None, Tensor | None]:
    """Compute by the operator that fits."""
    o = operands
    key, weights = calls.key, list(o.weights)
    if o.keeps == STATE_NEW:
        return torch.ops.fpac.forward_state(key, o.q, o.k, o.v, o.log_gate, weights, o.state, o.form, o.recent)
    if o.keeps == STATE_DROPPED:
        return torch.ops.fpac.forward(key, o.q, o.k, o.v, o.log_gate, weights, o.state, o.form, o.recent), None
    if o.q is None:
        return torch.ops.fpac.update(key, o.k, o.v, o.state, o.log_gate, weights), None
    return torch.ops.fpac.step(key, o.q, o.k, o.v, o.state, o.log_gate, weights), None
