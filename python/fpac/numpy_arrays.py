"""NumPy's arrays. bfloat16 is ml_dtypes', which is known by its name: NumPy has none of its own."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import abi
from .call import STATE_DROPPED, STATE_UPDATED, Operands
from .errors import ArgumentTypeError, InvalidError
from .kinds import MASK, WHOLE, Layout, contiguous_strides, index_name, mask_name, refuse_dtype, refuse_kind

if TYPE_CHECKING:
    from .call import Calls

_NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_ALIGNMENT = 64  # of the workspace of a C kernel

Array = np.ndarray[Any, Any]


class _Interface(ctypes.Structure):
    """PyArrayInterface, NumPy's array interface for C: it takes a third of the time of __array_interface__."""

    _fields_ = [
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("descr", ctypes.c_void_p),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_interface_at = _Interface.from_address
_empty = np.empty


def _address(array: Array) -> int:
    capsule = array.__array_struct__  # has the structure, and has to live while it is read
    return _interface_at(_pointer(capsule, None)).data or 0


def _dtype_name(name: str, array: Array) -> str:
    if name == MASK:
        return mask_name(array.dtype)
    if name in WHOLE:
        return index_name(name, array.dtype)
    found = _NAMES.get(array.dtype.name) if array.dtype.isnative else None
    if found is None:
        refuse_dtype(name, array.dtype, "ml_dtypes.bfloat16", "astype")
    return found


def _dtype(name: str, like: Array) -> np.dtype[Any]:
    """The NumPy dtype of the library's `name`."""
    if name == "f32":
        return np.dtype(np.float32)
    if name == "f16":
        return np.dtype(np.float16)
    if like.dtype.name == "bfloat16":
        return like.dtype
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


class Numpy:
    """The kind (kinds.Kind) of NumPy's arrays."""

    def take(self, name: str, array: object) -> Array:
        if type(array) is not np.ndarray:
            if not isinstance(array, np.ndarray):
                refuse_kind(name, array, "NumPy arrays")
            if isinstance(array, np.ma.MaskedArray):
                raise ArgumentTypeError(name, "is a masked array, which heads do not support: give .filled(value)")
        return array

    def give(self, array: Array, like: Array) -> Array:
        return array

    def run(self, calls: Calls, operands: Operands) -> tuple[Array | None, Array | None]:
        return calls.run(self, operands)

    def run_quick(self, calls: Calls, q: Any, k: Any, v: Any, state: Any, form: int) -> Array | None:
        if not (type(q) is type(k) is type(v) is np.ndarray):
            return None
        key: tuple[object, ...] = (
            form, q.shape, q.strides, q.dtype, k.shape, k.strides, k.dtype, v.shape, v.strides, v.dtype,
        )  # fmt: skip
        if state is not None:
            if type(state) is not np.ndarray or not state.flags.writeable:
                return None
            key = (*key, state.shape, state.strides, state.dtype)
        free = calls.free.get(key)
        if free is None:
            free = calls.prepared(key)
        try:
            prepared = free.pop()
        except IndexError:
            keeps = STATE_DROPPED if state is None else STATE_UPDATED
            prepared = calls.prepare(self, Operands(q, k, v, None, state, (), form, 0, keeps))
        try:
            prepared.q.data, prepared.k.data, prepared.v.data = _address(q), _address(k), _address(v)
            if state is not None:
                prepared.state_in.data = _address(state)
            o: Array = _empty(prepared.o_layout.shape, k.dtype)
            prepared.o.data = _address(o)
            if prepared.launch(self, k):
                prepared.compute(self, k)  # again, to tell why or with a larger workspace
            return o
        finally:
            calls.give_back(free, prepared)

    def signature(self, array: Array) -> Hashable:
        return array.shape, array.strides, array.dtype

    def layout(self, name: str, array: Array) -> Layout:
        dtype, size = _dtype_name(name, array), array.dtype.itemsize
        if array.size == 0:  # whose strides NumPy may have as 0
            return Layout(dtype, array.shape, contiguous_strides(array.shape), abi.CPU, 0)
        if any(stride % size for stride, length in zip(array.strides, array.shape) if length > 1):
            raise InvalidError(name, f"has strides of {array.strides} bytes, which are no multiples of its {size}")
        return Layout(dtype, array.shape, tuple(stride // size for stride in array.strides), abi.CPU, 0)

    address = staticmethod(_address)

    def check_written(self, name: str, array: Array) -> None:
        if not array.flags.writeable:
            raise InvalidError(name, "is read-only, but it is updated in place: give a copy")

    def check_detached(self, arrays: Iterable[tuple[str, Array]], why: str) -> None:
        pass  # NumPy knows no gradients

    def empty(self, layout: Layout, like: Array) -> Array:
        return np.empty(layout.shape, _dtype(layout.dtype, like))

    def zeros(self, shape: Sequence[int], dtype: str, like: Array) -> Array:
        return np.zeros(shape, _dtype(dtype, like))

    def scratch(self, size: int, like: Array) -> tuple[object, int]:
        memory = np.empty(size + _ALIGNMENT, np.uint8)
        return memory, -(-_address(memory) // _ALIGNMENT) * _ALIGNMENT

    def stream(self, device: int) -> int:
        return 0

    def guard(self, device: int) -> None:
        return None


NUMPY = Numpy()
