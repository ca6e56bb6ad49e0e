"""Finding and opening libfpa.so."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

from . import abi
from .errors import LibraryError, error_of

_HERE = Path(__file__).resolve().parent

VERSION = (_HERE / "VERSION").read_text(encoding="ascii").strip()
_SYSTEM = "libfpa.so.0"  # the number is SOVERSION in the Makefile

_lock = threading.Lock()
_library: ctypes.CDLL | None = None


def _places() -> list[Path]:
    """Where libfpa.so may lie: beside the package (a wheel), in the build folder of a checkout."""
    return [_HERE / "libfpa.so", _HERE.parent.parent / "build" / "libfpa.so"]


def find_library() -> str:
    """The path, or the name for the loader, of the library to open."""
    named = os.environ.get("FPAC_LIBRARY")
    if named:
        return named
    for place in _places():
        if place.exists():
            return str(place)
    return _SYSTEM


def _prototype(library: ctypes.CDLL) -> None:
    """Arguments and results. Structures that a call has ready are given by their address."""
    status, error, kernel = c_int, POINTER(abi.ErrorText), POINTER(c_void_p)
    options = POINTER(abi.Options)
    table = {
        "fpa_version": (c_char_p, []),
        "fpa_status_name": (c_char_p, [c_int]),
        "fpa_open": (status, [c_char_p, c_char_p, options, kernel, error]),
        "fpa_open_text": (status, [c_char_p, c_char_p, c_char_p, options, kernel, error]),
        "fpa_open_bundle": (status, [c_char_p, c_char_p, options, kernel, error]),
        "fpa_describe": (POINTER(abi.Description), [c_void_p]),
        "fpa_choose_form": (c_int, [c_void_p, c_int64, c_int]),
        "fpa_workspace_size": (status, [c_void_p, c_int, c_void_p, POINTER(c_size_t), error]),
        "fpa_forward": (status, [c_void_p, c_int, c_void_p, c_void_p, c_size_t, c_void_p]),
        "fpa_draft_workspace": (status, [c_void_p, c_void_p, c_void_p, POINTER(c_size_t), error]),
        "fpa_draft": (status, [c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p]),
        "fpa_accept": (status, [c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p]),
        "fpa_backward_workspace": (status, [c_void_p, c_int, c_void_p, POINTER(c_size_t), error]),
        "fpa_backward": (status, [c_void_p, c_int, c_void_p, c_void_p, c_size_t, c_void_p]),
        "fpa_close": (None, [c_void_p]),
        "fpa_open_layer": (status, [c_char_p, c_char_p, options, kernel, error]),
        "fpa_open_layer_text": (status, [c_char_p, c_char_p, c_char_p, options, kernel, error]),
        "fpa_open_bundle_layer": (status, [c_char_p, c_char_p, options, kernel, error]),
        "fpa_join_layer": (status, [c_char_p, kernel, POINTER(c_int), c_int, kernel, error]),
        "fpa_describe_layer": (POINTER(abi.LayerDescription), [c_void_p]),
        "fpa_layer_workspace_size": (status, [c_void_p, c_int, c_void_p, POINTER(c_size_t), error]),
        "fpa_layer_forward": (status, [c_void_p, c_int, c_void_p, c_void_p, c_size_t, c_void_p]),
        "fpa_layer_backward_workspace": (status, [c_void_p, c_int, c_void_p, POINTER(c_size_t), error]),
        "fpa_layer_backward": (status, [c_void_p, c_int, c_void_p, c_void_p, c_size_t, c_void_p]),
        "fpa_close_layer": (None, [c_void_p]),
    }
    for name, (result, arguments) in table.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


def _open() -> ctypes.CDLL:
    path = find_library()
    try:
        library = ctypes.CDLL(path)
    except OSError as reason:
        if path != _SYSTEM:
            raise LibraryError(path, f"cannot be loaded: {reason}") from None
        looked = ", ".join(str(place) for place in _places())
        raise LibraryError(
            "libfpa.so",
            f"was found neither in {looked} nor by the loader: install the wheel, run `make` in the checkout, or name "
            "the file in FPAC_LIBRARY",
        ) from None
    try:
        library.fpa_version.restype = c_char_p
        version = library.fpa_version().decode()
    except AttributeError:
        raise LibraryError(path, "is not libfpa: it has no fpa_version") from None
    if version != VERSION:
        raise LibraryError(
            path,
            f"is libfpa {version}, but this package is fpac {VERSION}: install the two of one version, or name that "
            "library in FPAC_LIBRARY",
        )
    try:
        _prototype(library)
    except AttributeError as reason:
        raise LibraryError(path, f"is not the complete libfpa ({reason}): libfpa-run only opens bundles") from None
    return library


def library() -> ctypes.CDLL:
    """libfpa, opened at the first call and then kept."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = _open()
    return _library


class Exchange:
    """What C has to know of arrays whose type has this __dlpack_c_exchange_api__, for fpa_forward_objects.

    forward: that function, given the address of an fpa_object_call, id() of q, k, v, state and o, and the workspace.
    """

    __slots__ = ("_read", "_stream", "_release", "_acquire", "forward")

    def __init__(self, table: abi.ExchangeTable) -> None:
        self._read, self._stream = table.dltensor_from_py_object_no_sync, table.current_work_stream
        python = ctypes.pythonapi
        self._release, self._acquire = (
            ctypes.cast(function, c_void_p).value
            for function in (python.PyEval_SaveThread, python.PyEval_RestoreThread)
        )
        # A call keeps Python's lock until it computes: it reads Python's objects.
        self.forward = ctypes.PyDLL(library()._name).fpa_forward_objects
        self.forward.restype, self.forward.argtypes = c_int, 7 * [c_void_p]

    def prepare(self, kernel: Kernel, form: int, tensors: int, size: int, error: int) -> abi.ObjectCall:
        """A call; tensors and error are addresses."""
        of = (None, kernel.address) if isinstance(kernel, LayerKernel) else (kernel.address, None)
        return abi.ObjectCall(self._read, self._stream, self._release, self._acquire, *of, form, tensors, size, error)


def find_exchange(capsule: object) -> Exchange | None:
    """None: it is None, or not of DLPack 1, or lacks a function."""
    if capsule is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    table = abi.ExchangeTable.from_address(pointer(capsule, b"dlpack_exchange_api"))
    return Exchange(table) if table.major == 1 and table.dltensor_from_py_object_no_sync else None


def library_version() -> str:
    """The version of the C library, "0.1.0"."""
    return library().fpa_version().decode()


def check(status: int, error: abi.ErrorText) -> None:
    """Raise what a function of the library reported."""
    if status:
        raise error_of(status, error.where.decode("utf-8", "replace"), error.message.decode("utf-8", "replace"))


class Kernel:
    """An open fpa_kernel. It is closed when nobody holds it any more: a call that is running holds it, so that it
    outlives a close() in another thread."""

    __slots__ = ("address", "size", "forward", "backward_size", "backward", "_close")

    def __init__(self, address: int) -> None:
        functions = library()
        self.address = address
        self.size, self.forward = functions.fpa_workspace_size, functions.fpa_forward
        self.backward_size, self.backward = functions.fpa_backward_workspace, functions.fpa_backward
        self._close = functions.fpa_close

    def __del__(self) -> None:
        if self.address:
            self._close(self.address)
            self.address = 0


class LayerKernel(Kernel):
    """An open fpa_layer. parts: kernels that it was joined of, which are held as long as it is."""

    __slots__ = ("parts",)

    def __init__(self, address: int, parts: tuple[Kernel, ...] = ()) -> None:
        functions = library()
        self.address, self.parts = address, parts
        self.size, self.forward = functions.fpa_layer_workspace_size, functions.fpa_layer_forward
        self.backward_size, self.backward = functions.fpa_layer_backward_workspace, functions.fpa_layer_backward
        self._close = functions.fpa_close_layer


def _open_address(function: str, arguments: list[bytes | None], options: abi.Options) -> int:
    address, error = c_void_p(), abi.ErrorText()
    status = getattr(library(), function)(*arguments, byref(options), byref(address), byref(error))
    check(status, error)
    assert address.value
    return address.value


def open_kernel(function: str, arguments: list[bytes | None], options: abi.Options) -> Kernel:
    """Call fpa_open, fpa_open_text or fpa_open_bundle."""
    return Kernel(_open_address(function, arguments, options))


def open_layer(function: str, arguments: list[bytes | None], options: abi.Options) -> LayerKernel:
    """Call fpa_open_layer, fpa_open_layer_text or fpa_open_bundle_layer."""
    return LayerKernel(_open_address(function, arguments, options))


def join_layer(name: bytes, kernels: tuple[Kernel, ...], heads: tuple[int, ...]) -> LayerKernel:
    """Call fpa_join_layer."""
    count, address, error = len(kernels), c_void_p(), abi.ErrorText()
    places = (c_void_p * max(count, 1))(*[kernel.address for kernel in kernels])
    status = library().fpa_join_layer(
        name, places, (c_int * max(count, 1))(*heads), count, byref(address), byref(error)
    )
    check(status, error)
    assert address.value
    return LayerKernel(address.value, kernels)
