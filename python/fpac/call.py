"""One call of a kernel. What a call needs in C's structures is prepared once for each set of layouts and then used
again: a call sets addresses, allocates its results and the workspace, and goes to C."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Hashable
from ctypes import addressof, byref, c_int64, c_size_t, c_void_p
from typing import Any, NamedTuple

from . import abi
from .errors import Code, InvalidError
from .kinds import INDICES, Array, Kind, Layout, check_dtype, in_c_order
from .library import Exchange, Kernel, check

# What becomes of the state.
STATE_DROPPED = 0  # it is not wanted
STATE_NEW = 1  # it is a result
STATE_UPDATED = 2  # it is written where it was read

_MOST_KEPT = 1 << 22  # bytes of a workspace on the CPU that a thread keeps; a larger one is allocated each time
_MOST_PREPARED = 128  # sets of layouts; a program with more of them begins anew


class _Kept(threading.local):
    """A thread's workspace on the CPU, for all its calls, which end before the next begins."""

    memory: object = None
    address = 0
    size = 0


kept_workspace = _Kept()

_NAMES = ("q", "k", "v", "log_gate", "state", "positions", "key_mask", *INDICES)


class Widths:
    """What results and checks need to know of a head."""

    __slots__ = ("name", "dtype", "state_dtype", "dv", "state_elements", "normalized", "backward", "layer")

    def __init__(
        self,
        name: str,
        dtype: str,
        state_dtype: str,
        dv: int,
        state_elements: int,
        normalized: bool = False,
        backward: bool = False,
        layer: bool = False,
    ) -> None:
        self.name, self.dtype, self.state_dtype = name, dtype, state_dtype
        self.dv, self.state_elements = dv, state_elements
        self.normalized, self.backward = normalized, backward  # backward: it was opened with gradients
        self.layer = layer  # of several heads: state_elements are of all of them

    def state_axes(self, heads: int) -> tuple[int, ...]:
        """Of one sequence's state."""
        return (self.state_elements,) if self.layer else (heads, self.state_elements)


class Operands(NamedTuple):
    """The arguments of one call; those not given are None. Shapes as in fpa_tensors."""

    q: Array | None
    k: Array
    v: Array
    log_gate: Array | None
    state: Array | None
    weights: tuple[Array, ...]
    form: int
    recent: int
    keeps: int
    positions: Array | None = None
    key_mask: Array | None = None
    cu_seqlens: Array | None = None
    state_index: Array | None = None
    state_out_index: Array | None = None
    max_length: int = 0

    def packs(self) -> bool:
        """Whether there are sequences of different lengths, or states in pools."""
        return (
            self.cu_seqlens is not None
            or self.state_index is not None
            or self.state_out_index is not None
            or self.max_length != 0
        )

    def arrays(self) -> list[tuple[str, Array]]:
        """Those given, with their names."""
        given = [(name, getattr(self, name)) for name in _NAMES if getattr(self, name) is not None]
        return given + [(f"weights[{i}]", weight) for i, weight in enumerate(self.weights)]


def make_tensor(layout: Layout) -> abi.DLTensor:
    """A DLTensor without an address. ctypes keeps the arrays that its pointers were set from."""
    axes = len(layout.shape)
    code, bits = abi.DTYPES[layout.dtype]
    return abi.DLTensor(
        device_type=layout.device_type,
        device_id=layout.device_id,
        ndim=axes,
        code=code,
        bits=bits,
        lanes=1,
        shape=(c_int64 * axes)(*layout.shape),
        strides=(c_int64 * axes)(*layout.strides),
    )


class Prepared:
    """The structures of one call, for operands of the same layouts. Used by one thread at a time."""

    __slots__ = (
        "kernel",
        "form",
        "widths",
        "tensors",
        "error",
        "q",
        "k",
        "v",
        "o",
        "log_gate",
        "positions",
        "key_mask",
        "indices",
        "state_in",
        "state_out",
        "weights",
        "weight_list",
        "o_layout",
        "state_layout",
        "tensors_at",
        "error_at",
        "size",
        "forward",
        "kernel_at",
        "device",
        "on_device",
        "twin",
        "again",
        "again_at",
    )

    def __init__(self, kernel: Kernel, widths: Widths, kind: Kind, operands: Operands) -> None:
        self.kernel, self.widths, self.form = kernel, widths, operands.form
        self.tensors, self.error = abi.Tensors(recent=operands.recent, max_length=operands.max_length), abi.ErrorText()
        self.forward, self.kernel_at = kernel.forward, kernel.address
        self.tensors_at, self.error_at = addressof(self.tensors), addressof(self.error)
        layouts = {name: kind.layout(name, array) for name, array in operands.arrays()}
        self._check_dtypes(layouts)
        self.on_device, self.device = layouts["k"].device_type != abi.CPU, layouts["k"].device_id
        tensors = {name: make_tensor(layout) for name, layout in layouts.items()}
        # DLTensors; None: not given
        self.q: Any = tensors.get("q")
        self.k, self.v = tensors["k"], tensors["v"]
        self.log_gate: Any = tensors.get("log_gate")
        self.positions: Any = tensors.get("positions")
        self.key_mask: Any = tensors.get("key_mask")
        self.indices = [(name, tensors[name]) for name in INDICES if name in tensors]
        self.state_in: Any = tensors.get("state")
        self.state_out: Any = self.state_in if operands.keeps == STATE_UPDATED else None
        self.weights = [tensors[f"weights[{i}]"] for i in range(len(operands.weights))]
        self.weight_list = (c_void_p * max(len(self.weights), 1))(*[addressof(weight) for weight in self.weights])
        self.o: Any = None
        self._point()
        self.o_layout: Any = None  # a Layout; None: no such result
        self.state_layout: Any = None
        self.twin: str | None = None  # the operand that lies as o does
        # The same call for C, which looks whether operands lie as these do, and its address; None where no kind asked
        self.again: abi.ObjectCall | None = None
        self.again_at = 0
        self.ask_size()  # checks the shapes, before anything is allocated
        self._add_results(layouts, operands.keeps == STATE_NEW)

    def _check_dtypes(self, layouts: dict[str, Layout]) -> None:
        widths = self.widths
        wanted = {"q": widths.dtype, "k": widths.dtype, "v": widths.dtype, "state": widths.state_dtype}
        wanted["key_mask"] = "mask"
        for name, layout in layouts.items():
            if name in INDICES:
                continue  # which were looked at when they were named
            check_dtype(name, layout, wanted.get(name, "f32"), widths.name)

    def _point(self) -> None:
        """Tell the fpa_tensors where the others are."""
        for name in ("q", "k", "v", "o", "log_gate", "positions", "key_mask", "state_in", "state_out"):
            tensor = getattr(self, name)
            setattr(self.tensors, name, addressof(tensor) if tensor is not None else None)
        for name, tensor in self.indices:
            setattr(self.tensors, name, addressof(tensor))
        self.tensors.weights = addressof(self.weight_list) if self.weights else None

    def _add_results(self, layouts: dict[str, Layout], with_state: bool) -> None:
        widths, k = self.widths, layouts["k"]
        if self.q is not None:
            self.o_layout = in_c_order(k, widths.dtype, (*layouts["q"].shape[:3], widths.dv))
            self.o = make_tensor(self.o_layout)
            self.twin = next((name for name in ("q", "v") if layouts[name] == self.o_layout), None)
        if with_state:
            given = layouts.get("state")
            sequences = layouts["cu_seqlens"].shape[0] - 1 if "cu_seqlens" in layouts else k.shape[0]
            shape = (sequences, *(given.shape[1:] if given else widths.state_axes(k.shape[2])))
            self.state_layout = in_c_order(k, widths.state_dtype, shape)
            self.state_out = make_tensor(self.state_layout)
        self._point()
        if with_state:
            self.ask_size()  # the form of one token depends on whether there is a state

    def ask_size(self) -> None:
        """How large a workspace has to be, with as many threads as OpenMP would use now."""
        size = c_size_t()
        status = self.kernel.size(self.kernel_at, self.form, self.tensors_at, byref(size), byref(self.error))
        check(status, self.error)
        self.size: int = size.value
        if self.again is not None:
            self.again.workspace_size = self.size

    def repeat_by(self, exchange: Exchange) -> None:
        """Make `again`."""
        self.again = exchange.prepare(self.kernel, self.form, self.tensors_at, self.size, self.error_at)
        self.again_at = addressof(self.again)

    def run(self, kind: Kind, operands: Operands) -> tuple[Array | None, Array | None]:
        """o and the new state, each None when it is not wanted."""
        q, k, v, log_gate, given, weights, _, _, _, positions, key_mask = operands[:11]
        address, o, state = kind.address, None, None
        if q is not None:
            self.q.data = address(q)
            o = kind.empty(self.o_layout, k)
            self.o.data = address(o)
        self.k.data = address(k)
        self.v.data = address(v)
        if log_gate is not None:
            self.log_gate.data = address(log_gate)
        if positions is not None:
            self.positions.data = address(positions)
        if key_mask is not None:
            self.key_mask.data = address(key_mask)
        for name, tensor in self.indices:
            tensor.data = address(getattr(operands, name))
        if given is not None:
            self.state_in.data = address(given)
        if self.state_layout is not None:
            state = kind.empty(self.state_layout, k)
            self.state_out.data = address(state)
        for tensor, weight in zip(self.weights, weights):
            tensor.data = address(weight)
        self.compute(kind, k)
        return o, state

    def compute(self, kind: Kind, like: Array) -> None:
        """With all addresses set."""
        status = self.launch(kind, like)
        if status == Code.INVALID and self.error.where == b"workspace":
            self.ask_size()  # OpenMP has more threads than when it was asked for
            status = self.launch(kind, like)
        if status:
            check(status, self.error)

    def launch(self, kind: Kind, like: Array) -> int:
        """Compute, or for a GPU begin to; gives a status."""
        size, workspace = self.size, None
        if self.on_device:
            if size:
                memory, workspace = kind.scratch(size, like)
            self.tensors.stream = kind.stream(self.device)
            guard = kind.guard(self.device)
            if guard is not None:
                with guard:
                    return self.forward(self.kernel_at, self.form, self.tensors_at, workspace, size, self.error_at)
        elif size:
            kept = kept_workspace
            if size <= kept.size:
                workspace = kept.address
            else:
                memory, workspace = kind.scratch(size, like)
                if size <= _MOST_KEPT:
                    kept.memory, kept.address, kept.size = memory, workspace, size
        return self.forward(self.kernel_at, self.form, self.tensors_at, workspace, size, self.error_at)


_serial = itertools.count(1)
_open: dict[str, weakref.ref[Calls]] = {}  # a WeakValueDictionary is slower by half a microsecond


def _forget(key: str, reference: object) -> None:
    _open.pop(key, None)


def find_calls(key: str) -> Calls:
    """The head of that key. InvalidError: there is none."""
    reference = _open.get(key)
    calls = reference() if reference else None
    if calls is None:
        raise InvalidError(key, "is not the key of a head that is open in this process")
    return calls


class Calls:
    """The prepared calls of one kernel, and the kernel, while it is open.

    free: by layouts and the way of the call, those that nobody uses now; a list has them for good.
    last: by the way of the call, the list of those used last, for kinds that can tell that layouts are as before.
    key: its name in this process, for torch's graphs. All that the shapes of results depend on is in it: a graph that
    was kept from another process is taken only where the head at its place has the same.
    """

    __slots__ = ("_kernel", "widths", "free", "last", "key", "__weakref__")

    def __init__(self, kernel: Kernel, widths: Widths) -> None:
        self._kernel: Kernel | None = kernel
        self.widths = widths
        self.free: dict[object, list[Prepared]] = {}
        self.last: dict[object, list[Prepared]] = {}
        w = widths
        self.key = f"{w.name}/{w.dtype}/{w.dv}/{w.state_dtype}/{w.state_elements}/{next(_serial)}"
        _open[self.key] = weakref.ref(self, functools.partial(_forget, self.key))

    @property
    def closed(self) -> bool:
        return self._kernel is None

    def kernel(self) -> Kernel:
        """InvalidError: it was closed."""
        if self._kernel is None:
            raise InvalidError(self.widths.name, "is closed: open the head again")
        return self._kernel

    def close(self) -> None:
        """The kernel is unloaded when the last call that runs has ended."""
        self._kernel = None
        self.forget()

    def forget(self) -> None:
        """What is prepared holds the kernel."""
        self.free = {}
        self.last = {}

    def run(self, kind: Kind, operands: Operands) -> tuple[Array | None, Array | None]:
        """Compute. Threads may call at once: each takes structures that no other one has."""
        signature, state, gate = kind.signature, operands.state, operands.log_gate
        if operands.keeps == STATE_UPDATED:
            kind.check_written("state", state)
        key: tuple[Hashable, ...] = (
            operands.form,
            operands.recent,
            operands.keeps,
            None if operands.q is None else signature(operands.q),
            signature(operands.k),
            signature(operands.v),
            None if gate is None else signature(gate),
            None if state is None else signature(state),
            tuple(map(signature, operands.weights)) if operands.weights else None,
            None if operands.positions is None else signature(operands.positions),
            None if operands.key_mask is None else signature(operands.key_mask),
        )
        if operands.packs():
            rest = (operands.cu_seqlens, operands.state_index, operands.state_out_index)
            key += (operands.max_length, *(None if array is None else signature(array) for array in rest))
        free = self.prepared(key)
        try:
            prepared = free.pop()
        except IndexError:
            prepared = self.prepare(kind, operands)
        try:
            return prepared.run(kind, operands)
        finally:
            self.give_back(free, prepared)

    def prepared(self, key: object) -> list[Prepared]:
        """The calls of these layouts that nobody uses now: pop one, and give_back it."""
        free = self.free.get(key)
        if free is None:
            if len(self.free) >= _MOST_PREPARED:
                self.free = {}
            free = self.free.setdefault(key, [])
        return free

    def prepare(self, kind: Kind, operands: Operands) -> Prepared:
        """InvalidError: the head was closed."""
        if self._kernel is None:
            self.forget()
        return Prepared(self.kernel(), self.widths, kind, operands)

    def give_back(self, free: list[Prepared], prepared: Prepared) -> None:
        """For the next call."""
        free.append(prepared)
        if self._kernel is None:
            self.forget()  # closed meanwhile
