"""A layer of unlike heads that is open: a callable like a head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from .call import Calls, Widths
from .errors import InvalidError, UnsupportedError
from .explanation import LayerExplanation, explain_layer
from .heads import Head
from .library import LayerKernel, join_layer, library


class Layer(Head):
    """Heads that need not be alike, side by side along the heads' axis, computed by one call.

    It is called as a head is: q [B, L, Hq, d], k [B, L, H, d], v [B, L, H, dv], where H is all heads of the layer and
    Hq a multiple of it. A state is [B, S]: those of all heads, as explain().parts says. log_gate, positions and
    key_mask are given where some head takes them. weights are named HEAD.NAME; those that are one a head have as many
    as their part. recent, of a layer in which a head has a window: the tokens of k and v before q's first, at most the
    longest window's; heads without one have them in their states. form=None: each head's own choice.
    """

    def __init__(self, kernel: LayerKernel) -> None:
        about = explain_layer(library().fpa_describe_layer(kernel.address).contents)
        self._about: LayerExplanation = about
        self._calls = Calls(
            kernel,
            Widths(
                about.name,
                about.dtype,
                about.state_dtype,
                about.dv,
                about.state_elements,
                about.normalized,
                about.backward,
                layer=True,
            ),
        )

    @property
    def features(self) -> NoReturn:
        """Each part has its own: explain().parts."""
        raise UnsupportedError(self.name, "is a layer: explain().parts has the features of its heads")

    def explain(self) -> LayerExplanation:  # type: ignore[override]
        """Widths, parts and the layout of states."""
        return self._about

    def choose_form(self, length: int, with_state: bool = False) -> NoReturn:
        """Each head chooses its own form."""
        raise UnsupportedError(self.name, "is a layer: each of its heads chooses its own form")

    def _run_draft(self, *_: object) -> NoReturn:
        """C has drafts of heads only."""
        raise UnsupportedError(
            self.name,
            "is a layer, which has no drafts: open its heads by name, and draft with each and its part of the state",
        )

    def __repr__(self) -> str:
        about = self._about
        closed = ", closed" if self.closed else ""
        parts = ", ".join(f"{part.heads} x {part.head.name}" for part in about.parts)
        return f"<fpac layer {about.name}: d {about.d}, dv {about.dv}, {parts}, {about.target}{closed}>"


def join(name: str, heads: Sequence[tuple[Head, int]]) -> Layer:
    """A layer of heads that are open, of bundles say: each with how many key and value heads it is for. Closing the
    layer leaves them open; while it is open they stay loaded."""
    if any(isinstance(head, Layer) for head, _ in heads):
        raise InvalidError(name, "is a layer, but only heads can be joined")
    kernels = tuple(head._calls.kernel() for head, _ in heads)
    return Layer(join_layer(name.encode(), kernels, tuple(count for _, count in heads)))
