"""torch's tensors, on the CPU or a GPU: in the current stream, with memory from torch's allocators."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch

from . import abi
from .call import STATE_DROPPED, STATE_UPDATED, Operands, kept_workspace
from .errors import ArgumentTypeError, UnsupportedError
from .kinds import MASK, WHOLE, Layout, contiguous_strides, index_name, mask_name, refuse_dtype, refuse_kind
from .library import find_exchange

if TYPE_CHECKING:
    from .call import Calls

_NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_DEVICES = {"cpu": abi.CPU, "cuda": abi.CUDA}
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_ALIGNMENT = 64  # torch aligns memory of the CPU to so many bytes, of a GPU to 512

# torch's Python function makes a Stream object; its compilers use this one for the address alone.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
    lambda device: torch.cuda.current_stream(device).cuda_stream
)

# Recent versions of torch let C read what a tensor is.
_exchange = find_exchange(getattr(torch.Tensor, "__dlpack_c_exchange_api__", None))
_STEP = 3  # a way to call, as forms are

_empty_like = torch.empty_like
_is_compiling = torch.compiler.is_compiling
_grad_enabled = torch.is_grad_enabled
_repeat: Any = None if _exchange is None else _exchange.forward
_modes = torch._C._len_torch_dispatch_stack
_transforms = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)

# torch.cuda.current_device without a look whether CUDA was initialised, which a tensor on a GPU has seen to.
_current_device = getattr(torch._C, "_cuda_getDevice", None) or torch.cuda.current_device


class _Entered(threading.local):
    devices: frozenset[int] = frozenset()


_entered = _Entered()


def _enter(index: int) -> None:
    """A thread has no current context until it launches something: launch something small, once a thread."""
    torch.zeros(1, device=torch.device("cuda", index))
    _entered.devices |= {index}


def wants_gradients(operands: Operands) -> bool:
    """Whether a gradient of an operand may be asked for later."""
    if not torch.is_grad_enabled():
        return False
    o = operands  # by its names: torch 2.6 traces no slices of named tuples
    return (
        o.k.requires_grad
        or o.v.requires_grad
        or (o.q is not None and o.q.requires_grad)
        or (o.log_gate is not None and o.log_gate.requires_grad)
        or (o.state is not None and o.state.requires_grad)
        or (o.positions is not None and o.positions.requires_grad)
        or any([weight.requires_grad for weight in o.weights])
    )


def check_gradients(operands: Operands, why: str = "this operator has no gradients") -> None:
    """Rather refuse than detach in silence."""
    if wants_gradients(operands):
        check_detached(operands.arrays(), why)


def check_detached(tensors: Iterable[tuple[str, torch.Tensor]], why: str) -> None:
    """Kind.check_detached."""
    for name, tensor in tensors if torch.is_grad_enabled() else ():
        if tensor.requires_grad:
            raise UnsupportedError(name, f"requires grad, but {why}: detach the inputs or use torch.no_grad()")


def _check_transforms() -> None:
    """torch.func's transforms see operators of torch alone, and their tensors have no memory."""
    if _transforms():
        raise UnsupportedError(
            "torch.func",
            "its transforms (grad, vmap, jvp) do not go through heads: use torch.autograd, and B for a batch",
        )


def check_positions(positions: torch.Tensor | None) -> None:
    """Whatever else is differentiated, they are not."""
    if positions is not None and positions.requires_grad:
        raise UnsupportedError("positions", "requires grad, but positions have no gradients: give positions.detach()")


def check_trains(calls: Calls, operands: Operands) -> None:
    """The head has gradients of such a call. UnsupportedError, in words: it has none."""
    if not calls.widths.backward:
        check_gradients(
            operands, f"{calls.widths.name} was opened without gradients (backward=True opens it with them)"
        )
    if operands.keeps == STATE_UPDATED:
        check_gradients(operands, "a state that is updated in place has no gradients")
    if operands.state_index is not None:
        check_gradients(
            operands,
            "autograd does not differentiate calls with state_index, whose states are no operand of their own "
            "(return_saved=True and head.backward have their gradients)",
        )
    if operands.recent or operands.form == abi.RECURRENT:
        check_gradients(operands, "decoding has no gradients")
    check_positions(operands.positions)


class Torch:
    """The kind (kinds.Kind) of torch's tensors."""

    def take(self, name: str, array: object) -> torch.Tensor:
        if not isinstance(array, torch.Tensor):
            refuse_kind(name, array, "torch tensors")
        return array

    def give(self, array: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return array

    def run(self, calls: Calls, operands: Operands) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        if not _is_compiling():
            _check_transforms()
        if wants_gradients(operands):
            from .torch import run_saving_operator

            check_trains(calls, operands)
            return run_saving_operator(calls, operands)
        # Fake tensors have no memory; a mode wants to see every operator.
        if torch.compiler.is_compiling() or type(operands.k) not in _PLAIN or _modes():
            from .torch import run_operator  # which needs this module

            return run_operator(calls, operands)
        return calls.run(self, operands)

    def run_quick(self, calls: Calls, q: Any, k: Any, v: Any, state: Any, form: int) -> torch.Tensor | None:
        if not (type(q) in _PLAIN and type(k) in _PLAIN and type(v) in _PLAIN):
            return None
        if state is not None and type(state) not in _PLAIN:
            return None
        if _is_compiling() or _modes():  # in this order: compilers cannot trace the second
            return None
        if _grad_enabled() and (
            q.requires_grad or k.requires_grad or v.requires_grad or (state is not None and state.requires_grad)
        ):
            return None
        if q.is_neg() or k.is_neg() or v.is_neg() or (state is not None and state.is_neg()):
            return None  # is refused there
        return self.run_plain(calls, q, k, v, state, form)

    def run_plain(
        self, calls: Calls, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, state: torch.Tensor | None, form: int
    ) -> torch.Tensor:
        """calls.run of what most calls have: q, k, v, and perhaps a state, which is updated. Half of the time that a
        small call takes is Python's: nothing here asks for what such a call does not have."""
        free = calls.last.get(form if state is None else _STEP)
        if not free:
            return self._run_prepared(calls, q, k, v, state, form)
        try:
            prepared = free.pop()
        except IndexError:  # another thread was sooner
            return self._run_prepared(calls, q, k, v, state, form)
        # Most calls are like the one before: C looks whether this one is, and computes.
        try:
            size, workspace, kept = prepared.size, 0, kept_workspace
            if prepared.on_device:
                if self.guard(prepared.device) is not None:
                    return self._run_prepared(calls, q, k, v, state, form)
                if size:
                    memory, workspace = self.scratch(size, k)
            elif size <= kept.size:
                workspace = kept.address
            else:
                memory, workspace = self.scratch(size, k)
            twin = prepared.twin  # half of the time that empty takes
            o = _empty_like(q if twin == "q" else v) if twin else self.empty(prepared.o_layout, k)
            try:
                status = _repeat(prepared.again_at, id(q), id(k), id(v), id(state), id(o), workspace)
            except Exception:  # torch's, of a tensor that has no memory: what follows says so
                status = abi.OBJECTS_CHANGED
            if status == 0:
                return o
            if status > 0:
                prepared.compute(self, k)  # again, to tell why or with a larger workspace
                return o
        finally:
            free.append(prepared)  # as give_back
            if calls._kernel is None:
                calls.forget()
        return self._run_prepared(calls, q, k, v, state, form)

    def _run_prepared(
        self, calls: Calls, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, state: torch.Tensor | None, form: int
    ) -> torch.Tensor:
        """run_plain, by what was prepared for tensors of these layouts."""
        _check_transforms()
        # fmt: off
        key: tuple[object, ...] = (
            form, q.shape, q.stride(), q.dtype, q.device, k.shape, k.stride(), k.dtype, k.device,
            v.shape, v.stride(), v.dtype, v.device,
        )
        # fmt: on
        if state is not None:
            key = (*key, state.shape, state.stride(), state.dtype, state.device)
        free = calls.free.get(key)
        if free is None:
            free = calls.prepared(key)
        try:
            prepared = free.pop()
        except IndexError:
            keeps = STATE_DROPPED if state is None else STATE_UPDATED
            prepared = calls.prepare(self, Operands(q, k, v, None, state, (), form, 0, keeps))
        try:
            prepared.q.data = q.data_ptr()
            prepared.k.data = k.data_ptr()
            prepared.v.data = v.data_ptr()
            if state is not None:
                prepared.state_in.data = state.data_ptr()
            twin = prepared.twin  # half of the time that empty takes
            o = _empty_like(q if twin == "q" else v) if twin else self.empty(prepared.o_layout, k)
            prepared.o.data = o.data_ptr()
            if prepared.launch(self, k):
                prepared.compute(self, k)  # again, to tell why or with a larger workspace
            if _exchange is not None:
                if prepared.again is None:
                    prepared.repeat_by(_exchange)
                calls.last[form if state is None else _STEP] = free
            return o
        finally:
            calls.give_back(free, prepared)

    def signature(self, array: torch.Tensor) -> Hashable:
        return array.shape, array.stride(), array.dtype, array.device, array.is_neg()

    def layout(self, name: str, array: torch.Tensor) -> Layout:
        dtype = _NAMES.get(array.dtype)
        if name == MASK or name in WHOLE:
            dtype = mask_name(array.dtype) if name == MASK else index_name(name, array.dtype)
        device = _DEVICES.get(array.device.type)
        if dtype is None:
            refuse_dtype(name, array.dtype, "bfloat16", ".to()")
        if device is None:
            raise ArgumentTypeError(name, f"lies on {array.device}, but tensors on cpu or cuda are needed")
        if array.layout is not torch.strided:
            raise ArgumentTypeError(name, f"is {array.layout}, but a strided tensor is needed: give .to_dense()")
        if array.is_neg():  # as z.conj().imag is: memory has the negative of what torch shows
            raise ArgumentTypeError(name, "is a lazily negated view of torch: give .resolve_neg()")
        # of no elements, whose strides may be 0: as an expanded gradient has them, which is contiguous then
        strides = array.stride() if array.numel() else contiguous_strides(array.shape)
        return Layout(dtype, tuple(array.shape), strides, device, array.device.index or 0)

    address = staticmethod(torch.Tensor.data_ptr)

    def check_written(self, name: str, array: torch.Tensor) -> None:
        pass  # every tensor can be written to

    check_detached = staticmethod(check_detached)

    def empty(self, layout: Layout, like: torch.Tensor) -> torch.Tensor:
        # half of the time that torch.empty takes
        return torch.empty_strided(layout.shape, layout.strides, dtype=DTYPES[layout.dtype], device=like.device)

    def zeros(self, shape: Sequence[int], dtype: str, like: torch.Tensor) -> torch.Tensor:
        return like.new_zeros(shape, dtype=DTYPES[dtype])

    def scratch(self, size: int, like: torch.Tensor) -> tuple[object, int]:
        memory = torch.empty_strided((size + _ALIGNMENT,), (1,), dtype=torch.uint8, device=like.device)
        return memory, -(-memory.data_ptr() // _ALIGNMENT) * _ALIGNMENT

    stream = staticmethod(_raw_stream)

    def guard(self, device: int) -> AbstractContextManager[Any] | None:
        if device not in _entered.devices:
            _enter(device)
        return None if _current_device() == device else torch.cuda.device(device)


TORCH = Torch()
