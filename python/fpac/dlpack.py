"""Arrays of other libraries in the CPU's memory, by DLPack: read without a copy as NumPy's, results given back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import ArgumentTypeError
from .numpy_arrays import Numpy

if TYPE_CHECKING:
    from .call import Calls, Operands

_ON_A_CPU = (1, 3)  # kDLCPU, kDLCUDAHost


def _namespace(array: Any) -> Any:
    """The module that makes such arrays: it has from_dlpack."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    return sys.modules[type(array).__module__.partition(".")[0]]


class Dlpack(Numpy):
    """The kind (kinds.Kind) of arrays with __dlpack__ that no other kind knows."""

    def take(self, name: str, array: Any) -> np.ndarray[Any, Any]:
        if isinstance(array, np.ndarray):
            return array
        if not hasattr(array, "__dlpack__"):
            raise ArgumentTypeError(name, f"is a {type(array).__qualname__}, which has no __dlpack__")
        if array.__dlpack_device__()[0] not in _ON_A_CPU:
            raise ArgumentTypeError(name, "is not on the CPU: on a GPU give torch tensors or CuPy arrays")
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError) as reason:
            raise ArgumentTypeError(name, f"cannot be taken by DLPack: {reason}") from None

    def give(self, array: np.ndarray[Any, Any], like: Any) -> Any:
        return _namespace(like).from_dlpack(array)

    def run(self, calls: Calls, operands: Operands) -> tuple[Any, Any]:
        return calls.run(self, operands)


DLPACK = Dlpack()
