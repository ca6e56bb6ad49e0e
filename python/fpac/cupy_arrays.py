"""CuPy's arrays: in CuPy's current stream, with memory from its pool."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import cupy

from . import abi
from .errors import ArgumentTypeError
from .kinds import MASK, Layout, mask_name, refuse_kind

if TYPE_CHECKING:
    from .call import Calls, Operands

_NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}

Array = Any  # cupy.ndarray


class Cupy:
    """The kind (kinds.Kind) of CuPy's arrays."""

    def take(self, name: str, array: object) -> Array:
        if not isinstance(array, cupy.ndarray):
            refuse_kind(name, array, "CuPy arrays")
        return array

    def give(self, array: Array, like: Array) -> Array:
        return array

    def run(self, calls: Calls, operands: Operands) -> tuple[Array | None, Array | None]:
        return calls.run(self, operands)

    def run_quick(self, calls: Calls, q: object, k: object, v: object, state: object, form: int) -> Array | None:
        return None

    def signature(self, array: Array) -> Hashable:
        return array.shape, array.strides, array.dtype, array.device.id

    def layout(self, name: str, array: Array) -> Layout:
        dtype = mask_name(array.dtype) if name == MASK else _NAMES.get(array.dtype.name)
        size = array.dtype.itemsize
        if dtype is None:
            raise ArgumentTypeError(name, f"is {array.dtype}, but float32, float16 and bfloat16 are taken")
        strides = tuple(stride // size for stride in array.strides)
        return Layout(dtype, array.shape, strides, abi.CUDA, array.device.id)

    def address(self, array: Array) -> int:
        return array.data.ptr

    def check_written(self, name: str, array: Array) -> None:
        pass  # every array can be written to

    def _dtype(self, dtype: str, like: Array) -> Any:
        plain = {"f32": "float32", "f16": "float16"}
        return plain[dtype] if dtype in plain else like.dtype

    def empty(self, layout: Layout, like: Array) -> Array:
        with like.device:
            return cupy.empty(layout.shape, self._dtype(layout.dtype, like))

    def zeros(self, shape: Sequence[int], dtype: str, like: Array) -> Array:
        with like.device:
            return cupy.zeros(shape, self._dtype(dtype, like))

    def scratch(self, size: int, like: Array) -> tuple[object, int]:
        with like.device:
            memory = cupy.cuda.alloc(size)  # aligned to 512 bytes
        return memory, memory.ptr

    def stream(self, device: int) -> int:
        return cupy.cuda.get_current_stream(device).ptr

    def guard(self, device: int) -> AbstractContextManager[Any]:
        return cupy.cuda.Device(device)


CUPY = Cupy()
