"""What goes wrong, as exceptions: one class a code of the C library, each also the built-in that a reader expects."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """The codes of fpa_error.h."""

    INVALID = 1
    UNSUPPORTED = 2
    NO_MEMORY = 3
    IO = 4
    COMPILE = 5
    LOAD = 6
    REFUSED = 7
    DEVICE = 8


class Error(Exception):
    """Something that fpac refused or could not do.

    code: which kind (a Code; an int for a code of a later library). where: the place, such as "mine.lua:7" or "q"; may
    be empty. message: what is wrong and what to do.
    """

    default_code: int = Code.INVALID

    def __init__(self, where: str, message: str, code: int | None = None) -> None:
        super().__init__(where, message)
        self.code: int = self.default_code if code is None else code
        self.where = where
        self.message = message

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class InvalidError(Error, ValueError):
    """A spec, an array or an option is wrong."""


class ArgumentTypeError(Error, TypeError):
    """An argument is of a kind or dtype that the head does not take."""


class UnsupportedError(Error, NotImplementedError):
    """A valid request that this build, form or target cannot serve."""

    default_code = Code.UNSUPPORTED


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed; nothing was changed."""

    default_code = Code.NO_MEMORY


class FileError(Error, OSError):
    """A file could not be read or written."""

    default_code = Code.IO

    __str__ = Error.__str__


class CompileError(Error, RuntimeError):
    """The compiler is missing, failed or ran past its time."""

    default_code = Code.COMPILE


class LoadError(Error, RuntimeError):
    """A compiled module is damaged or could not be loaded."""

    default_code = Code.LOAD


class RefusedError(Error, RuntimeError):
    """The kernel was compared with the formula and found wrong."""

    default_code = Code.REFUSED


class DeviceError(Error, RuntimeError):
    """The GPU, its driver or its libraries are missing, or a call to them failed."""

    default_code = Code.DEVICE


class LibraryError(Error, ImportError):
    """There is no libfpa.so, or it is not the one that this package was made for."""

    default_code = Code.LOAD


_CLASSES: dict[int, type[Error]] = {
    Code.INVALID: InvalidError,
    Code.UNSUPPORTED: UnsupportedError,
    Code.NO_MEMORY: OutOfMemoryError,
    Code.IO: FileError,
    Code.COMPILE: CompileError,
    Code.LOAD: LoadError,
    Code.REFUSED: RefusedError,
    Code.DEVICE: DeviceError,
}


def error_of(code: int, where: str, message: str) -> Error:
    """The exception for what the C library says; a code that is not known is an Error."""
    known = _CLASSES.get(code)
    return known(where, message, Code(code)) if known else Error(where, message, code)
