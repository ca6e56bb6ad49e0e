"""A head that is open: a callable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import abi
from .backward import NAMES, Saved, run_backward, run_saving
from .call import STATE_DROPPED, STATE_NEW, STATE_UPDATED, Calls, Operands, Widths
from .drafts import Accepted, run_draft
from .errors import ArgumentTypeError, InvalidError, UnsupportedError
from .explanation import Explanation, explain
from .kinds import INDICES, Array, Kind, kind_of
from .library import Kernel, library

_FORMS: dict[str | None, int] = {None: abi.AUTO, "auto": abi.AUTO}
_FORMS.update((name, number) for number, name in enumerate(abi.FORMS))

Weights = Mapping[str, Array] | Sequence[Array] | None


def _form_number(form: str | None) -> int:
    number = _FORMS.get(form)
    if number is None:
        raise InvalidError("form", f"is {form!r}, but one of auto, {', '.join(abi.FORMS)} is needed")
    return number


class Head:
    """A verified kernel of one head. Made by fpac.load, fpac.head and fpac.load_bundle.

    Axes: B sequences, L tokens, Hq query heads, H key and value heads (Hq a multiple of H), D features, N elements of
    a state of one sequence and head. Arrays are NumPy's, torch's, CuPy's, or have __dlpack__ and lie on the CPU; all of
    a call are of one kind, and so are its results. Any strides, but the last axis is contiguous (of states the last
    but two, of weights all). Heads may be called from several threads at once.
    """

    _about: Any

    def __init__(self, kernel: Kernel) -> None:
        about = explain(library().fpa_describe(kernel.address).contents)
        widths = Widths(
            about.name,
            about.dtype,
            about.state_dtype,
            about.dv,
            about.state_elements,
            about.normalized,
            about.backward_verdict is not None,
        )
        self._about = about
        self._calls = Calls(kernel, widths)

    # What it is

    @property
    def name(self) -> str:
        """Of the head, as its spec has it."""
        return self._about.name

    @property
    def features(self) -> int:
        """D, the rows of the state."""
        return self._about.features

    @property
    def weight_names(self) -> tuple[str, ...]:
        """Matrices that a call is given, in their order."""
        return self._about.weight_names

    @property
    def key(self) -> str:
        """Its name among torch's operators."""
        return self._calls.key

    def explain(self) -> Explanation:
        """Widths, features, forms and their cost, what was verified."""
        return self._about

    def choose_form(self, length: int, with_state: bool = False) -> str:
        """The form that a call of so many tokens takes when it names none."""
        number = library().fpa_choose_form(self._calls.kernel().address, length, with_state)
        return abi.FORMS[number]

    def __repr__(self) -> str:
        about = self._about
        closed = ", closed" if self.closed else ""
        return f"<fpac head {about.name}: d {about.d}, dv {about.dv}, D {about.features}, {about.target}{closed}>"

    # What it computes

    def __call__(
        self,
        q: Array,
        k: Array,
        v: Array,
        log_gate: Array | None = None,
        weights: Weights = None,
        state: Array | None = None,
        return_state: bool = False,
        form: str | None = None,
        *,
        recent: int = 0,
        return_saved: bool = False,
        positions: Array | None = None,
        key_mask: Array | None = None,
        cu_seqlens: Array | None = None,
        max_length: int = 0,
        state_index: Array | None = None,
    ) -> Any:
        """o, or (o, state) with return_state; with return_saved one thing more at the end, for `backward`.

        q [B, L, Hq, d]; k [B, L, H, d]; v [B, L, H, dv]; o [B, L, Hq, dv], in C order.
        log_gate [B, L, H] float32, of gated heads: natural logarithms; that of step t multiplies what came before t.
        weights: the run-time matrices by name, or in the order of weight_names: [rows, columns], [d] of a diagonal or
        [rows] of one column; float32, C order, with a leading H where there is one a head.
        state [B, H, N], or [B, H, D, dv] without a normaliser: what came before; None: nothing. It is not changed.
        form: "parallel", "chunked", "recurrent", or None for the fastest.
        recent: tokens before q's one that the state has not seen; k, v, log_gate, positions and key_mask have
        recent + 1 then. Of heads with a window: the tokens of k and v before q's first, the window's or all there are.
        positions [B, L, n] float32, or [B, L] where n is 1: of heads that take them.
        key_mask [B, L] bool or uint8, of heads that take one: True where the key takes part; of others nothing counts
        but their log-gate.
        cu_seqlens [S + 1] int32 or int64: S sequences of lengths of their own, one behind the other. All arrays with
        tokens are [1, total, ...], sequence s has tokens cu_seqlens[s] .. cu_seqlens[s + 1] - 1, states are [S, H, N].
        max_length: no sequence is longer; 0: total. On a GPU nobody looks at cu_seqlens before it is used.
        state_index [B] or [S] int32: state is a pool [slots, H, N], of which sequence s begins with slot
        state_index[s]; -1: with zero. The new states are [S, H, N] all the same.
        """
        number = _FORMS.get(form)
        # Most calls have nothing else: Python is half of the time that a small one takes.
        if not (
            log_gate is not None or weights is not None or state is not None or return_state or recent or return_saved
            or positions is not None or key_mask is not None or cu_seqlens is not None or state_index is not None
            or max_length or number is None
        ):  # fmt: skip
            o = kind_of("k", k).run_quick(self._calls, q, k, v, None, number)
            if o is not None:
                return o
        if return_saved:
            sequences = (positions, key_mask, cu_seqlens, state_index, None, max_length)
            return self._run_saving(
                q, k, v, log_gate, weights, state, return_state, _form_number(form), recent, sequences
            )
        keeps = STATE_NEW if return_state else STATE_DROPPED
        tokens = (positions, key_mask, cu_seqlens, state_index, None, max_length)
        o, state = self._run(q, k, v, log_gate, weights, state, _form_number(form), recent, keeps, tokens)
        return (o, state) if return_state else o

    def backward(
        self,
        saved: Saved,
        d_o: Array,
        d_state: Array | None = None,
        wanted: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Gradients of a loss, by the names of what they are of, given its gradient in o and in the new state.

        saved: of a call with return_saved. The head was opened with backward=True.
        wanted: some of q, k, v, log_gate, state, and names of matrices; None: of all that the call was given. What is
        not wanted is not computed. With cu_seqlens or state_index the gradient of the state is one a sequence,
        [S, H, N], not a pool's.
        """
        if not isinstance(saved, Saved):
            what = "is {}, but what a call with return_saved=True gave is needed"
            raise ArgumentTypeError("saved", what.format(type(saved).__name__))
        given = [name for name in NAMES if getattr(saved.operands, name) is not None] + list(self.weight_names)
        names = given if wanted is None else list(wanted)
        for name in names:
            if name not in NAMES and name not in self.weight_names:
                raise InvalidError("wanted", f"names {name!r}, but there are {_list((*NAMES, *self.weight_names))}")
        kind = kind_of("k", saved.operands.k)
        gradients, matrices = run_backward(
            self._calls,
            kind,
            saved,
            kind.take("d_o", d_o),
            None if d_state is None else kind.take("d_state", d_state),
            frozenset(names),
            [name in names for name in self.weight_names],
        )
        found = {name: matrix for name, matrix in zip(self.weight_names, matrices) if matrix is not None}
        return {name: kind.give(array, d_o) for name, array in {**gradients, **found}.items()}

    def step(
        self,
        q: Array,
        k: Array,
        v: Array,
        state: Array,
        log_gate: Array | None = None,
        weights: Weights = None,
        *,
        recent: int = 0,
        positions: Array | None = None,
        key_mask: Array | None = None,
        cu_seqlens: Array | None = None,
        max_length: int = 0,
        state_index: Array | None = None,
        state_out_index: Array | None = None,
    ) -> Any:
        """o of tokens that are decoded, one or a few; the state is updated in place. Shapes as in a call, and
        `recent` of heads with a window, too.

        state_index: state is a pool, of whose slots those are updated. state_out_index: a sequence begins with the one
        and is left in the other, as several do that begin alike; -1: with zero; nowhere."""
        _needs_state(state)
        into = state_index if state_out_index is None else state_out_index
        if not (
            log_gate is not None or weights is not None or recent or positions is not None or key_mask is not None
            or cu_seqlens is not None or into is not None or max_length
        ):  # fmt: skip
            o = kind_of("k", k).run_quick(self._calls, q, k, v, state, abi.RECURRENT)
            if o is not None:
                return o
        tokens = (positions, key_mask, cu_seqlens, state_index, into, max_length)
        return self._run(q, k, v, log_gate, weights, state, abi.RECURRENT, recent, STATE_UPDATED, tokens)[0]

    def update(
        self,
        k: Array,
        v: Array,
        state: Array,
        log_gate: Array | None = None,
        weights: Weights = None,
        *,
        positions: Array | None = None,
        key_mask: Array | None = None,
        cu_seqlens: Array | None = None,
        max_length: int = 0,
        state_index: Array | None = None,
        state_out_index: Array | None = None,
    ) -> None:
        """Put tokens into the state, in place, without asking anything of it: what follows calls with `recent`."""
        _needs_state(state)
        into = state_index if state_out_index is None else state_out_index
        tokens = (positions, key_mask, cu_seqlens, state_index, into, max_length)
        self._run(None, k, v, log_gate, weights, state, abi.AUTO, 0, STATE_UPDATED, tokens)

    def draft(
        self,
        q: Array,
        k: Array,
        v: Array,
        state: Array,
        log_gate: Array | None = None,
        weights: Weights = None,
        *,
        positions: Array | None = None,
        key_mask: Array | None = None,
        accepted: Accepted | None = None,
        state_index: Array | None = None,
        state_out_index: Array | None = None,
    ) -> Any:
        """o of up to 16 tokens that may not all stay: their queries see the state and, causally, the tokens' own keys.
        The state stays as it is; `accept` then puts the first ones into it.

        accepted: tokens of the draft before, which go into the state in the same pass, before the queries read it. The
        state is then updated in place. Indices as in a step.
        """
        queries = {"q": q, "k": k, "v": v, "log_gate": log_gate, "positions": positions, "key_mask": key_mask}
        return self._run_draft(queries, state, accepted, weights, state_index, state_out_index)

    def accept(
        self,
        k: Array,
        v: Array,
        state: Array,
        count: Array,
        log_gate: Array | None = None,
        weights: Weights = None,
        *,
        positions: Array | None = None,
        key_mask: Array | None = None,
        state_index: Array | None = None,
        state_out_index: Array | None = None,
    ) -> None:
        """Put the first count[b] tokens of a draft of sequence b into the state, in place. count [B] int32, where k is:
        on a GPU nobody looks at it before it is used."""
        accepted = Accepted(k, v, count, log_gate, positions, key_mask)
        self._run_draft({}, state, accepted, weights, state_index, state_out_index)

    def _run_draft(
        self,
        queries: dict[str, Any],
        state: Array,
        accepted: Accepted | None,
        weights: Weights,
        state_index: Array | None,
        state_out_index: Array | None,
    ) -> Any:
        _needs_state(state)
        like = queries["k"] if queries else accepted.k if accepted is not None else None
        kind = kind_of("k", like)
        into = state_index if state_out_index is None else state_out_index
        indices = {"state_index": state_index, "state_out_index": None if accepted is None else into}
        taken = () if weights is None else self._take_weights(kind, weights)
        o = run_draft(self._calls, kind, queries, state, accepted, taken, indices)
        return o if o is None else kind.give(o, like)

    def new_state(self, k: Array) -> Any:
        """The state before the first token, zeros [B, H, N], for keys [B, L, H, d]: of their kind, where they lie."""
        kind, about = kind_of("k", k), self._about
        taken = kind.take("k", k)
        if len(taken.shape) != 4:
            raise InvalidError("k", f"has {len(taken.shape)} axes, but 4 are needed")
        shape = (taken.shape[0], *self._calls.widths.state_axes(taken.shape[2]))
        return kind.give(kind.zeros(shape, about.state_dtype, taken), k)

    def _run_saving(
        self,
        q: Array,
        k: Array,
        v: Array,
        log_gate: Array | None,
        weights: Weights,
        state: Array | None,
        return_state: bool,
        form: int,
        recent: int,
        tokens: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        if recent:
            raise InvalidError("recent", "is for decoding, which has no gradients")
        if not self._calls.widths.backward:
            raise UnsupportedError(self.name, "was opened without gradients: open it with backward=True")
        kind = kind_of("k", k)
        taken = self._take(kind, q, k, v, log_gate, weights, state, form, 0, STATE_DROPPED, tokens)
        kind.check_detached(taken.arrays(), "with return_saved head.backward has the gradients, not autograd")
        saved, new = run_saving(self._calls, kind, taken, return_state)
        o = kind.give(saved.o, k)
        return (o, kind.give(new, k), saved) if return_state else (o, saved)

    def _run(
        self,
        q: Array | None,
        k: Array,
        v: Array,
        log_gate: Array | None,
        weights: Weights,
        state: Array | None,
        form: int,
        recent: int,
        keeps: int,
        tokens: tuple[Any, ...],
    ) -> tuple[Any, Any]:
        kind = kind_of("k", k)
        taken = self._take(kind, q, k, v, log_gate, weights, state, form, recent, keeps, tokens)
        o, new = kind.run(self._calls, taken)
        return o if o is None else kind.give(o, k), new if new is None else kind.give(new, k)

    def _take(
        self,
        kind: Kind,
        q: Array | None,
        k: Array,
        v: Array,
        log_gate: Array | None,
        weights: Weights,
        state: Array | None,
        form: int,
        recent: int,
        keeps: int,
        tokens: tuple[Any, ...] = (),
    ) -> Operands:
        *arrays, max_length = tokens or (0,)
        names = ("positions", "key_mask", *INDICES)
        taken = {name: kind.take(name, array) for name, array in zip(names, arrays) if array is not None}
        return Operands(
            None if q is None else kind.take("q", q),
            kind.take("k", k),
            kind.take("v", v),
            None if log_gate is None else kind.take("log_gate", log_gate),
            None if state is None else kind.take("state", state),
            () if weights is None else self._take_weights(kind, weights),
            form,
            recent,
            keeps,
            max_length=max_length,
            **taken,
        )

    def _take_weights(self, kind: Kind, weights: Mapping[str, Array] | Sequence[Array]) -> tuple[Array, ...]:
        names = self._about.weight_names
        if isinstance(weights, Mapping):
            for name in weights:
                if name not in names:
                    what = f"has {_list(names)}" if names else "has none"
                    raise InvalidError("weights", f"names {name!r}, but {self.name} {what}")
            missing = [name for name in names if name not in weights]
            if missing:
                raise InvalidError("weights", f"{_list(missing)} of {self.name} missing")
            weights = [weights[name] for name in names]
        elif len(weights) != len(names):
            raise InvalidError("weights", f"{len(weights)} are given, but {self.name} has {_list(names)}")
        return tuple([kind.take(f"weights[{names[i]!r}]", weight) for i, weight in enumerate(weights)])

    # Its life

    @property
    def closed(self) -> bool:
        """Whether close was called."""
        return self._calls.closed

    def close(self) -> None:
        """Unload the kernel, as happens by itself when nobody holds the head any more. Calls that run go on."""
        self._calls.close()

    def __enter__(self) -> Head:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def __copy__(self) -> Head:
        return self

    def __deepcopy__(self, memo: object) -> Head:
        return self  # nothing in it changes: copies of a model share it

    def __reduce__(self) -> Any:
        raise TypeError(
            "a head cannot be pickled: open the spec again, it is in the cache; of modules save state_dict()"
        )


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _needs_state(state: Array | None) -> None:
    if state is None:
        raise InvalidError("state", "is None, but a step needs a state to update: see new_state")
