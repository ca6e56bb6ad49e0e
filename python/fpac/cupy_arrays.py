"""CuPy's arrays: in CuPy's current stream, with memory from its pool."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import cupy

from . import abi
from .kinds import MASK, WHOLE, Layout, contiguous_strides, index_name, mask_name, refuse_dtype, refuse_kind

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
        dtype = _NAMES.get(array.dtype.name)
        if name == MASK or name in WHOLE:
            dtype = mask_name(array.dtype) if name == MASK else index_name(name, array.dtype)
        if dtype is None:
            refuse_dtype(name, array.dtype, "ml_dtypes.bfloat16", "astype")
        size = array.dtype.itemsize
        strides = tuple(stride // size for stride in array.strides) if array.size else contiguous_strides(array.shape)
        return Layout(dtype, array.shape, strides, abi.CUDA, array.device.id)

    def address(self, array: Array) -> int:
        return array.data.ptr

    def check_written(self, name: str, array: Array) -> None:
        pass  # every array can be written to

    def check_detached(self, arrays: Iterable[tuple[str, Array]], why: str) -> None:
        pass  # CuPy knows no gradients

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
