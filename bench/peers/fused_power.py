"""Power attention of degree 2 by vidrial's kernels, through `retention`'s fused form.

bf16, d = dv = 64, 2304 features, normalised by a first value that is 1. vidrial compiles with nvcc when
it runs and needs CUTLASS's headers beside itself: without them it would clone them, and is skipped.
"""

import importlib.util
import os
from pathlib import Path

from measure import Peer, Skip, speed_up_tuning

D = 64
CHUNKS = (1024,)


def check_headers():
    """Before vidrial is imported: importing it clones what is missing."""
    spec = importlib.util.find_spec("vidrial")
    if spec is None or not spec.submodule_search_locations:
        raise Skip("vidrial is not installed")
    folder = Path(list(spec.submodule_search_locations)[0])
    places = (folder.parent / "cutlass", folder / "cutlass")
    if not any((place / "include" / "cute").is_dir() for place in places):
        raise Skip(f"vidrial needs CUTLASS's headers in {places[0]}/include")


def settle_policy():
    """Its own tuner builds hundreds of kernels for minutes; FPAC_VIDRIAL_TUNE=1 lets it."""
    from vidrial.jit import PickAny, PickBest, settings

    tune = os.environ.get("FPAC_VIDRIAL_TUNE") == "1"
    settings.policy = PickBest if tune else PickAny
    return "tuned" if tune else "untuned"


def forward(peer, chunk):
    def make(batch, length, heads):
        from retention.vidrial import power_retention

        q, k, v = (peer.random(batch, length, heads, D) for _ in range(3))
        return lambda: power_retention(q, k, v, deg=2, scale=D**-0.5, chunk_size=chunk)

    return make


def main():
    peer = Peer("vidrial", ["vidrial"], __doc__)
    speed_up_tuning()
    try:
        check_headers()
        policy = settle_policy()
    except Exception as error:
        peer.stop(error)
    for length in peer.arguments.lengths:
        for chunk in CHUNKS:
            if length > chunk:
                peer.prefill(f"power p2 d{D} chunk {chunk} {policy}", length, forward(peer, chunk))


if __name__ == "__main__":
    main()
