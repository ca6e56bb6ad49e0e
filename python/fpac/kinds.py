"""Kinds of arrays: what a call needs to know of NumPy's arrays, torch's tensors and others.

A kind is a module-like object; the one of an array is found by its type, and nothing is imported for it that the
caller has not imported already.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from .errors import ArgumentTypeError

if TYPE_CHECKING:
    from .call import Calls, Operands

Array = Any  # an array of one of the kinds


MASK = "key_mask"  # the argument whose dtypes are others than those of heads


def mask_name(dtype: object) -> str:
    """The library's name of a mask's dtype: NumPy's, torch's and CuPy's bool and uint8 are spelled alike."""
    spelled = str(dtype).removeprefix("torch.")
    if spelled not in ("bool", "uint8"):
        raise ArgumentTypeError(MASK, f"is {dtype}, but bool or uint8 is needed: true where a key takes part")
    return "mask"


INDICES = ("cu_seqlens", "state_index", "state_out_index")  # arguments of whole numbers
WHOLE = (*INDICES, "count")  # and how many tokens of a draft are accepted


def index_name(name: str, dtype: object) -> str:
    """The library's name of the dtype of offsets or indices."""
    spelled = str(dtype).removeprefix("torch.")
    taken = ("int32", "int64") if name == "cu_seqlens" else ("int32",)
    if spelled not in taken:
        raise ArgumentTypeError(name, f"is {dtype}, but one of {', '.join(taken)} is needed")
    return "i" + spelled[3:]


class Layout(NamedTuple):
    """What a DLTensor says of an array, but for its address."""

    dtype: str  # of the library: "f32", "bf16", "f16"; "mask"; "i32", "i64"
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    device_type: int
    device_id: int


class Kind(Protocol):
    """How a call reads and makes arrays of one kind. Functions are called with arrays of that kind only."""

    def take(self, name: str, array: object) -> Array:
        """Argument `name` as the functions below want it. ArgumentTypeError: it is of another kind."""

    def give(self, array: Array, like: Array) -> Array:
        """A result as the caller wants it, who gave `like`."""

    def run(self, calls: Calls, operands: Operands) -> tuple[Array | None, Array | None]:
        """Compute o and the new state, each None when it is not wanted: calls.run, or by way of a framework."""

    def run_quick(self, calls: Calls, q: object, k: object, v: object, state: object, form: int) -> Array | None:
        """o of a call without anything else, whose state is updated; None: it has to be run as all others."""

    def signature(self, array: Array) -> Hashable:
        """Everything that layout tells: equal ones have equal layouts."""

    def layout(self, name: str, array: Array) -> Layout:
        """The layout of argument `name`. ArgumentTypeError: of a dtype or kind of memory that no head takes."""

    def address(self, array: Array) -> int:
        """Of its first element."""

    def check_written(self, name: str, array: Array) -> None:
        """InvalidError: argument `name` cannot be written to."""

    def check_detached(self, arrays: Iterable[tuple[str, Array]], why: str) -> None:
        """UnsupportedError: of these arguments one has gradients by the framework, which the result will not have."""

    def empty(self, layout: Layout, like: Array) -> Array:
        """A new array of that shape and dtype in C order, where `like` lies."""

    def zeros(self, shape: Sequence[int], dtype: str, like: Array) -> Array:
        """A new array of zeros."""

    def scratch(self, size: int, like: Array) -> tuple[object, int]:
        """What holds `size` bytes, and their address: a multiple of 64, on a GPU of 256."""

    def stream(self, device: int) -> int:
        """The CUstream to compute in on that GPU."""

    def guard(self, device: int) -> AbstractContextManager[Any] | None:
        """What makes that GPU the current one, None where it is."""


_found: dict[type, Kind] = {}


def _resolve(name: str, array: object) -> Kind:
    root = type(array).__module__.partition(".")[0]
    if _derives(array, "numpy", "ndarray"):
        from .numpy_arrays import NUMPY

        return NUMPY
    if _derives(array, "torch", "Tensor"):
        from . import torch  # noqa: F401  defines the operators
        from .torch_tensors import TORCH

        return TORCH
    if root == "cupy":
        from .cupy_arrays import CUPY

        return CUPY
    if hasattr(array, "__dlpack__"):
        from .dlpack import DLPACK

        return DLPACK
    raise ArgumentTypeError(
        name,
        f"is a {type(array).__module__}.{type(array).__qualname__}, "
        "but NumPy arrays, torch tensors and arrays with __dlpack__ are accepted",
    )


def _derives(array: object, package: str, name: str) -> bool:
    return any(c.__name__ == name and c.__module__.partition(".")[0] == package for c in type(array).__mro__)


def kind_of(name: str, array: object) -> Kind:
    """The kind of argument `name`."""
    kind = _found.get(type(array))
    if kind is None:
        kind = _found[type(array)] = _resolve(name, array)
    return kind


def check_dtype(name: str, layout: Layout, wanted: str, head: str) -> None:
    """Refuse another dtype than the head's, in words."""
    if layout.dtype != wanted:
        raise ArgumentTypeError(name, f"is {layout.dtype}, but {head} takes {wanted} here: convert it before the call")


_OF_THE_HEAD = ("q", "k", "v", "state", "d_o", "d_state")


def refuse_dtype(name: str, dtype: object, bfloat16: str, convert: str) -> NoReturn:
    """Argument `name` is of a dtype that no head takes there. bfloat16, convert: as users of the kind have them."""
    taken = f"float32, float16 and {bfloat16} are" if name in _OF_THE_HEAD else "float32 is"
    raise ArgumentTypeError(name, f"is {dtype}, but {taken} taken: convert it with {convert}")


def refuse_kind(name: str, array: object, kind: str) -> NoReturn:
    """Argument `name` is of another kind than the first array."""
    raise ArgumentTypeError(
        name, f"is a {type(array).__qualname__}, but the others are {kind}: give arrays of one kind"
    )


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Of C order, in elements."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def in_c_order(like: Layout, dtype: str, shape: tuple[int, ...]) -> Layout:
    """Of a new array where `like` lies."""
    return Layout(dtype, shape, contiguous_strides(shape), like.device_type, like.device_id)
