"""Gradients: a forward pass that keeps what they need, and the backward pass.

C's structures are made for each call: a backward pass takes far longer than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from ctypes import addressof, byref, c_size_t, c_void_p
from typing import Any, NamedTuple

from . import abi
from .call import Calls, Operands, make_tensor
from .errors import InvalidError
from .kinds import WHOLE, Array, Kind, Layout, check_dtype, in_c_order
from .library import check


class Saved(NamedTuple):
    """What a forward pass leaves for its backward pass. Made by a head that is called with return_saved."""

    operands: Operands
    o: Array
    den: Array | None  # the sums of scores that normalisers are made of; None: the head has no normaliser


class _Call:
    """The structures of one call, and all that they point to."""

    def __init__(self, kind: Kind, tensors: Any) -> None:
        self.kind, self.tensors = kind, tensors
        self.kept: list[object] = []

    def give(self, name: str, array: Array | None, layout: Layout | None = None) -> None:
        """Tell C where an operand or a result is; None: not given."""
        if array is not None:
            setattr(self.tensors, name, self.point(name, array, layout))

    def point(self, name: str, array: Array, layout: Layout | None = None) -> int:
        tensor = make_tensor(layout or self.kind.layout(name, array))
        tensor.data = self.kind.address(array)
        self.kept += [tensor, array]
        return addressof(tensor)

    def give_list(self, name: str, arrays: Iterable[Array | None]) -> None:
        """The same of several, of which some may be None."""
        at = [None if array is None else self.point(f"{name}[{i}]", array) for i, array in enumerate(arrays)]
        if at:
            places = (c_void_p * len(at))(*at)
            self.kept.append(places)
            setattr(self.tensors, name, addressof(places))

    def run(self, size: Callable[..., int], compute: Callable[..., int], kernel: int, form: int, like: Array) -> None:
        bytes_, error = c_size_t(), abi.ErrorText()
        check(size(kernel, form, addressof(self.tensors), byref(bytes_), byref(error)), error)
        scratch = self.kind.scratch(bytes_.value, like)
        guard = None
        layout = self.kind.layout("k", like)
        if layout.device_type != abi.CPU:
            self.tensors.stream, guard = self.kind.stream(layout.device_id), self.kind.guard(layout.device_id)
        with guard or nullcontext():
            status = compute(kernel, form, addressof(self.tensors), scratch[1], bytes_.value, addressof(error))
        check(status, error)


def _check_dtypes(calls: Calls, kind: Kind, operands: Operands) -> None:
    widths = calls.widths
    wanted = {"q": widths.dtype, "k": widths.dtype, "v": widths.dtype, "state": widths.state_dtype}
    wanted["key_mask"] = "mask"
    for name, array in operands.arrays():
        if name in WHOLE:  # their layout says what they may be
            continue
        check_dtype(name, kind.layout(name, array), wanted.get(name, "f32"), widths.name)


def _give_operands(call: _Call, operands: Operands) -> None:
    call.give("q", operands.q)
    call.give("k", operands.k)
    call.give("v", operands.v)
    call.give("log_gate", operands.log_gate)
    call.give("state_in", operands.state)
    call.give_list("weights", operands.weights)
    call.give("positions", operands.positions)
    call.give("key_mask", operands.key_mask)
    call.give("cu_seqlens", operands.cu_seqlens)
    call.give("state_index", operands.state_index)
    call.tensors.max_length = operands.max_length


def _state_shape(calls: Calls, kind: Kind, operands: Operands) -> tuple[int, ...]:
    """Of the states of all sequences, as they are given, or as an array of three axes."""
    k_shape = kind.layout("k", operands.k).shape
    count = k_shape[0]
    if operands.cu_seqlens is not None:
        count = kind.layout("cu_seqlens", operands.cu_seqlens).shape[0] - 1
    if operands.state is None:
        return (count, *calls.widths.state_axes(k_shape[2]))
    return (count, *kind.layout("state", operands.state).shape[1:])


def _new(kind: Kind, like: Array, dtype: str, shape: tuple[int, ...]) -> Array:
    return kind.empty(in_c_order(kind.layout("k", like), dtype, shape), like)


def run_saving(calls: Calls, kind: Kind, operands: Operands, with_state: bool) -> Any:
    """Compute o; gives a Saved, and the new state or None."""
    _check_dtypes(calls, kind, operands)
    widths, k, call = calls.widths, operands.k, _Call(kind, abi.Tensors())
    q_shape, k_shape = kind.layout("q", operands.q).shape, kind.layout("k", k).shape
    if len(q_shape) != 4 or len(k_shape) != 4:
        raise InvalidError("q" if len(q_shape) != 4 else "k", "must have 4 axes")
    o = _new(kind, k, widths.dtype, (*q_shape[:3], widths.dv))
    den = _new(kind, k, "f32", q_shape[:3]) if widths.normalized else None
    state = None
    if with_state:
        state = _new(kind, k, widths.state_dtype, _state_shape(calls, kind, operands))
    _give_operands(call, operands)
    call.give("o", o)
    call.give("den", den)
    call.give("state_out", state)
    kernel = calls.kernel()
    call.run(kernel.size, kernel.forward, kernel.address, operands.form, k)
    return Saved(operands, o, den), state


# Gradients by the name of their operand; `weights` is a list.
NAMES = ("q", "k", "v", "log_gate", "state")


def run_backward(
    calls: Calls,
    kind: Kind,
    saved: Saved,
    d_o: Array,
    d_state: Array | None,
    wanted: frozenset[str],
    weights: list[bool],
) -> tuple[dict[str, Array], list[Array | None]]:
    """Gradients of the wanted operands, and of those matrices that are."""
    operands, widths, k = saved.operands, calls.widths, saved.operands.k
    check_dtype("d_o", kind.layout("d_o", d_o), widths.dtype, widths.name)
    call = _Call(kind, abi.GradientTensors())
    _give_operands(call, operands)
    call.give("o", saved.o)
    call.give("den", saved.den)
    call.give("d_o", d_o)
    call.give("d_state_out", d_state)
    gradients = {}
    for name in NAMES:
        array = getattr(operands, name)
        if name not in wanted:
            continue
        shape = None if array is None else kind.layout(name, array).shape
        if name == "state":  # of sequences, also where states are in a pool
            shape = _state_shape(calls, kind, operands)
        if shape is None:
            raise InvalidError("wanted", f"names {name}, which was not given")
        dtype = {"log_gate": "f32", "state": widths.state_dtype}.get(name, widths.dtype)
        # zeros where nothing is written: of heads without a gate, of tokens that are no sequence's
        some = (name == "log_gate" and widths.layer) or operands.cu_seqlens is not None
        gradients[name] = kind.zeros(shape, dtype, k) if some else _new(kind, k, dtype, shape)
        call.give("d_state_in" if name == "state" else f"d_{name}", gradients[name])
    matrices = [
        _new(kind, k, "f32", kind.layout("weights", array).shape) if want else None
        for array, want in zip(operands.weights, weights)
    ]
    if any(weights):
        call.give_list("d_weights", matrices)
    kernel = calls.kernel()
    call.run(kernel.backward_size, kernel.backward, kernel.address, operands.form, k)
    return gradients, matrices
