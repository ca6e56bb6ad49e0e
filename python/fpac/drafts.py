"""Drafts: several tokens a step, of which a state takes some in. C's structures are made for each call."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import addressof
from typing import Any, NamedTuple

from . import abi
from .backward import _Call
from .call import Calls
from .errors import InvalidError
from .kinds import Array, Kind, check_dtype, in_c_order
from .library import library


class Accepted(NamedTuple):
    """Tokens of a draft that may stay: its keys and values, [B, T, H, d] and [B, T, H, dv], and how many of each
    sequence do, from the first on."""

    k: Array
    v: Array
    count: Array  # [B] int32
    log_gate: Array | None = None
    positions: Array | None = None
    key_mask: Array | None = None


def _give(call: _Call, calls: Calls, kind: Kind, arrays: dict[str, Any], prefix: str = "") -> None:
    widths = calls.widths
    wanted = {"q": widths.dtype, "k": widths.dtype, "v": widths.dtype, "state": widths.state_dtype, "key_mask": "mask"}
    for name, array in arrays.items():
        if array is None:
            continue
        layout = kind.layout(name, array)
        if name not in ("count", "state_index", "state_out_index"):
            check_dtype(prefix + name, layout, wanted.get(name, "f32"), widths.name)
        if name != "state":
            call.give(name, array)


def _take(kind: Kind, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: kind.take(name, array) for name, array in arrays.items() if array is not None}


def run_draft(
    calls: Calls,
    kind: Kind,
    queries: dict[str, Any],
    state: Array,
    accepted: Accepted | None,
    weights: tuple[Array, ...],
    indices: dict[str, Any],
) -> Array | None:
    """o of the queries, None where there are none; the state takes in what is accepted."""
    call, half = _Call(kind, abi.Tensors()), _Call(kind, abi.Accepted())
    queries, indices, taken = _take(kind, queries), _take(kind, indices), kind.take("state", state)
    _give(call, calls, kind, {**queries, "state": taken, **indices})
    named = [(f"weights[{i}]", weight) for i, weight in enumerate(weights)]
    kind.check_detached([*queries.items(), ("state", taken), *named], "drafts have no gradients")
    call.give("state_in", taken)
    call.give_list("weights", weights)
    like = queries["k"] if "k" in queries else taken
    if accepted is not None:
        kind.check_written("state", taken)
        tokens = _take(kind, accepted._asdict())
        if "count" not in tokens:
            raise InvalidError("count", "is None, but the number of accepted tokens is needed")
        kind.check_detached([("accepted." + name, array) for name, array in tokens.items()], "drafts have no gradients")
        _give(half, calls, kind, tokens, "accepted.")
        call.give("state_out", taken)
        like = tokens["k"]
    o = None
    if "q" in queries:
        shape = kind.layout("q", queries["q"]).shape
        if len(shape) != 4:
            raise InvalidError("q", f"has {len(shape)} axes, but 4 are needed")
        o = kind.empty(in_c_order(kind.layout("k", like), calls.widths.dtype, (*shape[:3], calls.widths.dv)), like)
        call.give("o", o)
    functions, given = library(), addressof(half.tensors) if accepted is not None else None

    def with_accepted(function: Callable[..., int]) -> Callable[..., int]:
        return lambda kernel, _, tensors, *rest: function(kernel, tensors, given, *rest)

    compute = functions.fpa_draft if o is not None else functions.fpa_accept
    size = with_accepted(functions.fpa_draft_workspace)
    call.run(size, with_accepted(compute), calls.kernel().address, abi.AUTO, like)
    return o
