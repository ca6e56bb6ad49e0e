"""fpac: verified kernels of Factorized Polynomial Attention, from specs in Lua.

    head = fpac.load("mine.lua")
    o = head(q, k, v)

docs/python.md is the manual.
"""

from .drafts import Accepted
from .errors import (
    ArgumentTypeError,
    Code,
    CompileError,
    DeviceError,
    Error,
    FileError,
    InvalidError,
    LibraryError,
    LoadError,
    OutOfMemoryError,
    RefusedError,
    UnsupportedError,
)
from .explanation import Explanation, LayerExplanation
from .heads import Head
from .layers import Layer, join
from .library import VERSION as __version__
from .library import library_version
from .opening import Verdict, head, load, load_bundle, verify

__all__ = [
    "Accepted",
    "ArgumentTypeError",
    "Code",
    "CompileError",
    "DeviceError",
    "Error",
    "Explanation",
    "FileError",
    "Head",
    "InvalidError",
    "Layer",
    "LayerExplanation",
    "LibraryError",
    "LoadError",
    "OutOfMemoryError",
    "RefusedError",
    "UnsupportedError",
    "Verdict",
    "__version__",
    "head",
    "join",
    "library_version",
    "load",
    "load_bundle",
    "verify",
]
