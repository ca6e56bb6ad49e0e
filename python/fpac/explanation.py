"""What a head is, as a dataclass."""

from __future__ import annotations

from dataclasses import dataclass

from . import abi


@dataclass(frozen=True)
class WeightShape:
    """What a call gives of a run-time matrix."""

    rows: int
    columns: int  # 0: a diagonal, of which the `rows` numbers on it are given
    per_head: bool  # one a key and value head, else one for all

    def axes(self, heads: int) -> tuple[int, ...]:
        """Of the array that a call with so many key and value heads is given."""
        own = (self.rows, self.columns) if self.columns else (self.rows,)
        return (heads, *own) if self.per_head else own


@dataclass(frozen=True)
class Explanation:
    """What the library made of a head, on one target."""

    name: str
    target: str  # "c:avx512", "cuda:sm_90a"
    device: int  # of CUDA targets: which GPU
    dtype: str  # of q, k, v, o: "f32", "bf16", "f16"
    state_dtype: str
    arithmetic: str  # what products are rounded to; sums are float32
    d: int  # width of q and k
    dv: int  # width of v and o
    causal: bool
    gate: bool
    normalized: bool
    features: int  # D, the rows of the state
    state_elements: int  # N, of one sequence and head: D dv, and D more with a normaliser
    chunk: int  # tokens
    block: int  # of TSPOW, after simplification
    crossover: int  # tokens from which chunked beats parallel by the plan's count; 0: never
    flop: dict[str, float]  # of one head: parallel for a visible pair of tokens, chunked and recurrent for a token
    weight_names: tuple[str, ...]  # run-time matrices
    verdict: str  # what the kernel was checked on, and its largest error
    backward_verdict: str | None  # the same of its gradients; None: opened without them
    from_cache: bool  # loaded from the cache or a bundle, not compiled
    positions: int  # numbers of a token's position that calls give; 0: they give none
    key_mask: bool  # calls give a mask of keys
    heads: int  # key and value heads that calls have, as the head's constants do; 0: any number
    window: int  # newest keys that have the weight exp(scale q.k); 0: none
    weight_shapes: tuple[WeightShape, ...]  # in the order of weight_names
    weight_kinds: tuple[str, ...]  # likewise: projection, affine, diagonal, angle, phase, amplitude

    @property
    def state_bytes(self) -> int:
        """Of one sequence and head."""
        return self.state_elements * abi.DTYPES[self.state_dtype][1] // 8


def _shape(of: abi.WeightShape) -> WeightShape:
    return WeightShape(of.rows, of.columns, bool(of.per_head))


def explain(about: abi.Description) -> Explanation:
    """Copy it: the library's own goes with the kernel."""
    return Explanation(
        name=about.name.decode(),
        target=about.target.decode(),
        device=about.device,
        dtype=about.dtype.decode(),
        state_dtype=about.state_dtype.decode(),
        arithmetic=about.arithmetic.decode(),
        d=about.d,
        dv=about.dv,
        causal=bool(about.causal),
        gate=bool(about.gate),
        normalized=bool(about.normalized),
        features=about.features,
        state_elements=about.state_elements,
        chunk=about.chunk,
        block=about.block,
        crossover=about.crossover,
        flop=dict(zip(abi.FORMS, about.flop)),
        weight_names=tuple(about.weight_names[i].decode() for i in range(about.weight_count)),
        verdict=about.verdict.decode(),
        backward_verdict=about.backward_verdict.decode() if about.backward_verdict else None,
        from_cache=bool(about.from_cache),
        positions=about.positions,
        key_mask=bool(about.key_mask),
        heads=about.heads,
        window=about.window,
        weight_shapes=tuple(_shape(about.weight_shapes[i]) for i in range(about.weight_count)),
        weight_kinds=tuple(about.weight_kinds[i].decode() for i in range(about.weight_count)),
    )


@dataclass(frozen=True)
class LayerPart:
    """Some key and value heads of a layer that are alike."""

    head: Explanation
    first: int  # which of the layer's heads they are: first .. first + heads - 1
    heads: int
    state_offset: int  # where their states begin in a sequence's: [heads, head.state_elements], in C order
    first_weight: int  # number of their first matrix among the layer's


@dataclass(frozen=True)
class LayerExplanation:
    """What a layer is, on one target."""

    name: str
    target: str
    device: int
    dtype: str
    state_dtype: str
    d: int
    dv: int
    heads: int  # key and value heads of all parts
    gate: bool  # of some heads at least; so are the next two
    normalized: bool
    key_mask: bool
    positions: int  # numbers of a token's position; 0: no head takes any
    window: int  # the longest of its heads; 0: none has one
    backward: bool  # opened with gradients
    state_elements: int  # S, of one sequence: the states of all heads
    weight_names: tuple[str, ...]  # "HEAD.NAME"; of the second part of a head "HEAD@2.NAME"
    parts: tuple[LayerPart, ...]


def explain_layer(about: abi.LayerDescription) -> LayerExplanation:
    """Copy it, as explain does."""

    def part(of: abi.LayerPart) -> LayerPart:
        return LayerPart(explain(of.head.contents), of.first, of.heads, of.state_offset, of.first_weight)

    return LayerExplanation(
        name=about.name.decode(),
        target=about.target.decode(),
        device=about.device,
        dtype=about.dtype.decode(),
        state_dtype=about.state_dtype.decode(),
        d=about.d,
        dv=about.dv,
        heads=about.heads,
        gate=bool(about.gate),
        normalized=bool(about.normalized),
        key_mask=bool(about.key_mask),
        positions=about.positions,
        window=about.window,
        backward=bool(about.backward),
        state_elements=about.state_elements,
        weight_names=tuple(about.weight_names[i].decode() for i in range(about.weight_count)),
        parts=tuple(part(about.parts[i]) for i in range(about.part_count)),
    )
