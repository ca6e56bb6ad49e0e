"""Opening heads: from spec files, spec texts and bundles."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from ctypes import c_void_p, cast
from dataclasses import dataclass
from typing import Any

from . import abi, nvrtc
from .errors import InvalidError
from .heads import Head
from .layers import Layer
from .library import open_kernel, open_layer

Path = str | os.PathLike[str]
Log = Callable[[str], object]


def _text(name: str, value: Path | None) -> bytes | None:
    """For C: paths as the file system spells them."""
    if value is None:
        return None
    text = os.fsencode(value)
    if b"\0" in text:
        raise InvalidError(name, "has a zero byte in it")
    return text


def _log_function(log: Log | None) -> Any:
    if log is None:
        return cast(c_void_p(), abi.LogFunction)
    return abi.LogFunction(lambda user, line: log(line.decode("utf-8", "replace")) and None)


# What the library says of a name that is a layer's; tests/python/test_layer.py holds it to that.
_IS_LAYER = "is a layer of heads"
_OF_LAYERS = {
    "fpa_open": "fpa_open_layer",
    "fpa_open_text": "fpa_open_layer_text",
    "fpa_open_bundle": "fpa_open_bundle_layer",
}


def _open_head_or_layer(function: str, arguments: list[bytes | None], options: abi.Options) -> Head:
    try:
        return Head(open_kernel(function, arguments, options))
    except InvalidError as reason:
        if _IS_LAYER not in str(reason) or function not in _OF_LAYERS:
            raise
    return Layer(open_layer(_OF_LAYERS[function], arguments, options))


def _check_device(device: int | None, target: str | None) -> None:
    """A GPU's number goes with a GPU's target."""
    if device is not None and (target is None or target == "c" or target.startswith("c:")):
        raise InvalidError(
            "device",
            f'is {device!r}, but target "{target or "c"}" computes on the CPU: leave device out, or give target="cuda"',
        )


def _open(
    function: str,
    arguments: list[bytes | None],
    target: str | None,
    device: int | None,
    cache_dir: Path | None,
    compiler: Path | None,
    log: Log | None,
    backward: bool = False,
) -> Head:
    _check_device(device, target)
    options = abi.Options(
        target=_text("target", target),
        device=device or 0,
        cache_dir=_text("cache_dir", cache_dir),
        compiler=_text("compiler", compiler),
        log=_log_function(log),
        backward=backward,
    )
    if target is not None and target.startswith("cuda"):
        nvrtc.preload()
    head = _open_head_or_layer(function, arguments, options)
    if "torch" in sys.modules:
        from . import torch  # noqa: F401  so that torch.compile finds the operators
    return head


def load(
    spec: Path,
    name: str | None = None,
    target: str | None = None,
    *,
    device: int | None = None,
    cache_dir: Path | None = None,
    compiler: Path | None = None,
    log: Log | None = None,
    backward: bool = False,
) -> Head:
    """Open one head of a spec file: generate, compile (or take from the cache), load, verify.

    name: which head, or which layer of heads, which is then a Layer; None: the file's only head. target: "c" (None) for
    the best that this machine runs, "cuda" for the best of GPU `device`, or one of `fpac list`. device: which GPU (None:
    0); of a target of the CPU there is none to give. cache_dir: None for the usual place, "" for none. compiler: None for
    $FPA_CC, cc, gcc or clang. log: is called with lines about what is compiled and verified. backward: with gradients, a
    second module of the head (Head.backward).
    """
    arguments = [_text("spec", spec), _text("name", name)]
    return _open("fpa_open", arguments, target, device, cache_dir, compiler, log, backward)


def head(
    text: str,
    name: str | None = None,
    target: str | None = None,
    *,
    file: str = "text",
    device: int | None = None,
    cache_dir: Path | None = None,
    compiler: Path | None = None,
    log: Log | None = None,
    backward: bool = False,
) -> Head:
    """Open one head of a spec that is a text in Lua; messages call it `file`. The rest is as in load."""
    arguments = [_text("file", file), _text("text", text), _text("name", name)]
    return _open("fpa_open_text", arguments, target, device, cache_dir, compiler, log, backward)


def load_bundle(
    folder: Path,
    name: str,
    target: str | None = None,
    *,
    device: int | None = None,
    cache_dir: Path | None = None,
    log: Log | None = None,
    backward: bool = False,
) -> Head:
    """Open one head, or one layer of heads, of a folder that `fpac gen --object` wrote: needs no compiler.

    It is verified once a machine. backward: with gradients, of a folder that `fpac gen --object --backward` wrote.
    """
    arguments = [_text("folder", folder), _text("name", name)]
    return _open("fpa_open_bundle", arguments, target, device, cache_dir, None, log, backward)


@dataclass(frozen=True)
class Verdict:
    """What a kernel was compared with the formula on, and its largest error, in one line."""

    name: str
    target: str
    text: str

    def __str__(self) -> str:
        return f"{self.name} on {self.target}: {self.text}"


def verify(
    spec: Path,
    name: str | None = None,
    target: str | None = None,
    *,
    device: int | None = None,
    compiler: Path | None = None,
    log: Log | None = None,
) -> Verdict:
    """Compile a head afresh and compare every form with the formula in double precision; no cache is used.

    RefusedError: an element lies beyond its bound.
    """
    with load(spec, name, target, device=device, cache_dir="", compiler=compiler, log=log) as opened:
        about = opened.explain()
    return Verdict(about.name, about.target, about.verdict)
