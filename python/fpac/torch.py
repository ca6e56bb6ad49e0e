"""Heads as operators of torch, for torch.compile and everything else that traces.

    torch.ops.fpac.forward(key, q, k, v, log_gate, weights, state, form, recent, positions, key_mask) -> o
    torch.ops.fpac.forward_state(...)                                                  -> (o, state)
    torch.ops.fpac.step(key, q, k, v, state, log_gate, weights, positions, key_mask)   -> o; state is updated
    torch.ops.fpac.update(key, k, v, state, log_gate, weights, positions, key_mask)    state is updated
    torch.ops.fpac.forward_saving(key, q, k, v, log_gate, weights, state, form, with_state) -> (o, den, state)
    torch.ops.fpac.backward(key, q, k, v, log_gate, weights, state, o, den, d_o, d_state, form, needs) -> Tensor[]

The first four take cu_seqlens, state_index, state_out_index and max_length behind these, the last two cu_seqlens,
max_length, positions and key_mask. These two are of heads opened with gradients: autograd knows the one as the other's
backward pass. What is not there (den of a head without a normaliser, a state that is not wanted) is an empty tensor.

A Head that is called while torch traces calls these; one that is called with plain tensors goes to C directly, which
takes a tenth of the time that an operator in Python does. `key` names an open head of this process (head.key).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from . import abi
from .backward import NAMES, Saved, run_backward, run_saving
from .call import STATE_DROPPED, STATE_NEW, STATE_UPDATED, Calls, Operands, find_calls
from .errors import UnsupportedError
from .torch_tensors import DTYPES, TORCH, check_gradients, check_positions

Results = tuple[Tensor | None, Tensor | None]

_library = torch.library.Library("fpac", "DEF")
_grad_enabled = torch.is_grad_enabled

# Compilers leave the strides of inputs as they are: the last axis has to stay contiguous. The first since torch 2.7.
_STRIDES = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)


def _like(key: str, operands: Operands) -> Results:
    """Tensors as o and the new state are, without computing."""
    q, k, state, w = operands.q, operands.k, operands.state, find_calls(key).widths
    sequences = k.shape[0] if operands.cu_seqlens is None else operands.cu_seqlens.shape[0] - 1
    shape = (sequences, *(w.state_axes(k.shape[2]) if state is None else state.shape[1:]))
    o = None if q is None else q.new_empty((*q.shape[:3], w.dv), dtype=DTYPES[w.dtype])
    return o, k.new_empty(shape, dtype=DTYPES[w.state_dtype])


def _run_calls(key: str, operands: Operands) -> Results:
    """o and the state, below autograd."""
    if torch.is_grad_enabled():
        check_gradients(operands)
    return find_calls(key).run(TORCH, operands)


def _run_fake(key: str, operands: Operands) -> Results:
    """The same of fake tensors."""
    check_gradients(operands)
    return _like(key, operands)


Run = Callable[[str, Operands], Results]


# An operator's arguments as operands, and its results: each is called with _run_calls or with _run_fake. Whatever else
# stands between an operator and these is time of every call.


def _forward(
    run: Run, key: str, q: Tensor, k: Tensor, v: Tensor, log_gate: Any, weights: Any, state: Any, form: int,
    recent: int, positions: Any = None, key_mask: Any = None, *sequences: Any,
) -> Any:  # fmt: skip
    rest = (positions, key_mask, *sequences)
    return run(key, Operands(q, k, v, log_gate, state, tuple(weights or ()), form, recent, STATE_DROPPED, *rest))[0]


def _forward_state(
    run: Run, key: str, q: Tensor, k: Tensor, v: Tensor, log_gate: Any, weights: Any, state: Any, form: int,
    recent: int, positions: Any = None, key_mask: Any = None, *sequences: Any,
) -> Any:  # fmt: skip
    rest = (positions, key_mask, *sequences)
    return run(key, Operands(q, k, v, log_gate, state, tuple(weights or ()), form, recent, STATE_NEW, *rest))


def _step(
    run: Run, key: str, q: Tensor, k: Tensor, v: Tensor, state: Tensor, log_gate: Any, weights: Any,
    positions: Any = None, key_mask: Any = None, recent: int = 0, *sequences: Any,
) -> Any:  # fmt: skip
    rest = (positions, key_mask, *sequences)
    return run(
        key, Operands(q, k, v, log_gate, state, tuple(weights or ()), abi.RECURRENT, recent, STATE_UPDATED, *rest)
    )[0]


def _update(
    run: Run, key: str, k: Tensor, v: Tensor, state: Tensor, log_gate: Any, weights: Any, positions: Any = None,
    key_mask: Any = None, *sequences: Any,
) -> None:  # fmt: skip
    rest = (positions, key_mask, *sequences)
    run(key, Operands(None, k, v, log_gate, state, tuple(weights or ()), abi.AUTO, 0, STATE_UPDATED, *rest))


_tokens = "Tensor? positions=None, Tensor? key_mask=None"
_sequences = "Tensor? cu_seqlens=None, Tensor? state_index=None, Tensor? state_out_index=None, int max_length=0"
_rest = f"{_tokens}, {_sequences})"
_given = "Tensor q, Tensor k, Tensor v, Tensor? log_gate, Tensor[]? weights, Tensor? state, int form, int recent"
_inputs = f"{_given}, {_rest}"


def _quick_forward(
    key: str, q: Tensor, k: Tensor, v: Tensor, log_gate: Any, weights: Any, state: Any, form: int, recent: int,
    positions: Any = None, key_mask: Any = None, *sequences: Any,
) -> Any:  # fmt: skip
    """_forward, sooner where there is nothing but q, k and v."""
    if not (log_gate is not None or weights or state is not None or recent or positions is not None
            or key_mask is not None or (sequences and _any_given(sequences))
            or (_grad_enabled() and _any_requires_grad(q, k, v))):  # fmt: skip
        return TORCH.run_plain(find_calls(key), q, k, v, None, form)
    return _forward(_run_calls, key, q, k, v, log_gate, weights, state, form, recent, positions, key_mask, *sequences)


def _quick_step(
    key: str, q: Tensor, k: Tensor, v: Tensor, state: Tensor, log_gate: Any, weights: Any, positions: Any = None,
    key_mask: Any = None, recent: int = 0, *sequences: Any,
) -> Any:  # fmt: skip
    """_step, likewise."""
    if not (log_gate is not None or weights or recent or positions is not None or key_mask is not None
            or (sequences and _any_given(sequences))
            or (_grad_enabled() and (state.requires_grad or _any_requires_grad(q, k, v)))):  # fmt: skip
        return TORCH.run_plain(find_calls(key), q, k, v, state, abi.RECURRENT)
    return _step(_run_calls, key, q, k, v, state, log_gate, weights, positions, key_mask, recent, *sequences)


def _any_given(sequences: tuple[Any, ...]) -> bool:
    return any(array is not None for array in sequences[:3]) or bool(sequences[3:] and sequences[3])


def _any_requires_grad(q: Tensor, k: Tensor, v: Tensor) -> bool:
    return q.requires_grad or k.requires_grad or v.requires_grad


for _name, _schema, _operator, _quick in (
    ("forward", f"{_inputs} -> Tensor", _forward, _quick_forward),
    ("forward_state", f"{_inputs} -> (Tensor, Tensor)", _forward_state, None),
    (
        "step",
        f"Tensor q, Tensor k, Tensor v, Tensor(a!) state, Tensor? log_gate, Tensor[]? weights, {_tokens}, "
        f"int recent=0, {_sequences}) -> Tensor",
        _step,
        _quick_step,
    ),
    (
        "update",
        f"Tensor k, Tensor v, Tensor(a!) state, Tensor? log_gate, Tensor[]? weights, {_rest} -> ()",
        _update,
        None,
    ),
):
    _library.define(f"{_name}(str key, {_schema}", tags=[_STRIDES])
    for _place in ("CPU", "CUDA"):
        _library.impl(_name, _quick or partial(_operator, _run_calls), _place)
    _library.impl(_name, torch.library.fallthrough_kernel, "Autograd")  # gradients are refused below it
    torch.library.register_fake(f"fpac::{_name}", partial(_operator, _run_fake), lib=_library)


# ---- gradients ----

_made = "Tensor? positions, Tensor? key_mask"  # without defaults: torch 2.4 to 2.11 count those given
_saving = (
    "Tensor q, Tensor k, Tensor v, Tensor? log_gate, Tensor[] weights, Tensor? state, int form, bool with_state,"
    f" Tensor? cu_seqlens, int max_length, {_made}) -> (Tensor, Tensor, Tensor)"
)
_backward = (
    "Tensor q, Tensor k, Tensor v, Tensor? log_gate, Tensor[] weights, Tensor? state, Tensor o, Tensor den,"
    " Tensor d_o, Tensor? d_state, int form, bool[] needs,"
    f" Tensor? cu_seqlens, int max_length, {_made}) -> Tensor[]"
)


def _empty(like: Tensor) -> Tensor:
    return like.new_empty(0, dtype=torch.float32)


def _operands(
    q: Tensor, k: Tensor, v: Tensor, log_gate: Any, weights: Any, state: Any, form: int,
    cu_seqlens: Any, max_length: int, positions: Any, key_mask: Any,
) -> Operands:  # fmt: skip
    given = (q, k, v, log_gate, state, tuple(weights), form, 0, STATE_DROPPED, positions, key_mask)
    return Operands(*given, cu_seqlens=cu_seqlens, max_length=max_length)


def _forward_saving(
    key: str, q: Tensor, k: Tensor, v: Tensor, log_gate: Any, weights: Any, state: Any, form: int, with_state: bool,
    cu_seqlens: Any, max_length: int, positions: Any, key_mask: Any,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    given = _operands(q, k, v, log_gate, weights, state, form, cu_seqlens, max_length, positions, key_mask)
    saved, new = run_saving(find_calls(key), TORCH, given, with_state)
    return saved.o, _empty(k) if saved.den is None else saved.den, _empty(k) if new is None else new


def _fake_saving(
    key: str, q: Tensor, k: Tensor, v: Tensor, log_gate: Any, weights: Any, state: Any, form: int, with_state: bool,
    cu_seqlens: Any, max_length: int, positions: Any, key_mask: Any,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    given = _operands(q, k, v, log_gate, weights, state, form, cu_seqlens, max_length, positions, key_mask)
    o, new = _like(key, given)
    assert o is not None and new is not None  # q is given
    den = q.new_empty(q.shape[:3], dtype=torch.float32) if find_calls(key).widths.normalized else _empty(k)
    return o, den, new if with_state else _empty(k)


def _asked(needs: Any) -> tuple[frozenset[str], list[bool]]:
    """needs: of q, k, v, log_gate, state, then of the matrices."""
    count = len(NAMES)
    return frozenset(name for name, need in zip(NAMES, needs) if need), list(needs[count:])


def _run_backward(
    key: str, q: Tensor, k: Tensor, v: Tensor, log_gate: Any, weights: Any, state: Any,
    o: Tensor, den: Tensor, d_o: Tensor, d_state: Any, form: int, needs: Any,
    cu_seqlens: Any, max_length: int, positions: Any, key_mask: Any,
) -> list[Tensor]:  # fmt: skip
    calls = find_calls(key)
    given = _operands(q, k, v, log_gate, weights, state, form, cu_seqlens, max_length, positions, key_mask)
    saved = Saved(given, o, den if calls.widths.normalized else None)
    names, matrices = _asked(needs)
    found, of_matrices = run_backward(calls, TORCH, saved, d_o, d_state, names, matrices)
    return [found[name] for name in NAMES if name in names] + [x for x in of_matrices if x is not None]


def _fake_backward(
    key: str, q: Tensor, k: Tensor, v: Tensor, log_gate: Any, weights: Any, state: Any,
    o: Tensor, den: Tensor, d_o: Tensor, d_state: Any, form: int, needs: Any,
    cu_seqlens: Any, max_length: int, positions: Any, key_mask: Any,
) -> list[Tensor]:  # fmt: skip
    names, matrices = _asked(needs)
    given = dict(zip(NAMES, (q, k, v, log_gate, state)))
    like = [given[name] for name in NAMES if name in names] + [x for x, need in zip(weights, matrices) if need]
    return [x.new_empty(x.shape) for x in like]


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    key, q, k, v, log_gate, weights, state, form, with_state, cu_seqlens, max_length, positions, key_mask = inputs
    check_positions(positions)
    ctx.calls = find_calls(key)  # the head stays open until its backward pass
    ctx.key, ctx.form, ctx.with_state, ctx.count, ctx.max_length = key, form, with_state, len(weights), max_length
    given = (log_gate, state, cu_seqlens, positions, key_mask)
    ctx.has = tuple(x is not None for x in given)
    kept = [x for x in given if x is not None]
    ctx.save_for_backward(q, k, v, *kept, *weights, output[0], output[1])


def _differentiate(ctx: Any, d_o: Any, d_den: Any, d_state: Any) -> tuple[Any, ...]:
    kept = list(ctx.saved_tensors)
    q, k, v = kept[:3]
    rest = kept[3:]
    log_gate, state, cu_seqlens, positions, key_mask = [rest.pop(0) if has else None for has in ctx.has]
    weights, (o, den) = rest[: ctx.count], rest[ctx.count :]
    of = ctx.needs_input_grad
    # those of a list come as one, or as one each
    needs_weights = list(of[5]) if isinstance(of[5], (list, tuple)) else [bool(of[5])] * ctx.count
    needs = [bool(of[1]), bool(of[2]), bool(of[3]), bool(of[4]), bool(of[6]), *needs_weights]
    d_o = torch.zeros_like(o) if d_o is None else d_o.contiguous()
    given = d_state.contiguous() if ctx.with_state and d_state is not None else None
    found = iter(
        torch.ops.fpac.backward(
            ctx.key, q, k, v, log_gate, list(weights), state, o, den, d_o, given, ctx.form, needs, cu_seqlens,
            ctx.max_length, positions, key_mask,
        )
    )  # fmt: skip
    d_q, d_k, d_v, d_gate, d_given = [next(found) if need else None for need in needs[: len(NAMES)]]
    d_weights = [next(found) if need else None for need in needs_weights]
    return None, d_q, d_k, d_v, d_gate, d_weights, d_given, *6 * [None]


def _refuse_second(ctx: Any, *gradients: Any) -> None:
    raise UnsupportedError("backward", "has no gradients of its own: second derivatives are not supported")


for _name, _schema, _compute, _fake in (
    ("forward_saving", _saving, _forward_saving, _fake_saving),
    ("backward", _backward, _run_backward, _fake_backward),
):
    _library.define(f"{_name}(str key, {_schema}", tags=[_STRIDES])
    for _place in ("CPU", "CUDA"):
        _library.impl(_name, _compute, _place)
    torch.library.register_fake(f"fpac::{_name}", _fake, lib=_library)
torch.library.register_autograd("fpac::forward_saving", _differentiate, setup_context=_setup_context, lib=_library)
torch.library.register_autograd("fpac::backward", _refuse_second, lib=_library)


def run_saving_operator(calls: Calls, operands: Operands) -> Results:
    """Compute where gradients may be asked for."""
    o, with_state = operands, operands.keeps == STATE_NEW
    result, _, state = torch.ops.fpac.forward_saving(
        calls.key, o.q, o.k, o.v, o.log_gate, list(o.weights), o.state, o.form, with_state, o.cu_seqlens, o.max_length,
        o.positions, o.key_mask,
    )  # fmt: skip
    return result, state if with_state else None


def run_operator(calls: Calls, operands: Operands) -> Results:
    """Compute by the operator that fits."""
    o = operands
    key, weights, tokens = calls.key, list(o.weights) or None, (o.positions, o.key_mask)
    sequences = (o.cu_seqlens, o.state_index, o.state_out_index, o.max_length)
    rest = (o.log_gate, weights, o.state, o.form, o.recent, *tokens, *sequences)
    if o.keeps == STATE_NEW:
        return torch.ops.fpac.forward_state(key, o.q, o.k, o.v, *rest)
    if o.keeps == STATE_DROPPED:
        return torch.ops.fpac.forward(key, o.q, o.k, o.v, *rest), None
    if o.q is None:
        return torch.ops.fpac.update(key, o.k, o.v, o.state, o.log_gate, weights, *tokens, *sequences), None
    return torch.ops.fpac.step(key, o.q, o.k, o.v, o.state, o.log_gate, weights, *tokens, o.recent, *sequences), None
