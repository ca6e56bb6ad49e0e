"""Linear attention and the Taylor kernel of BASED, by flash-linear-attention (fla-core is enough).

bf16; linear: d = dv = 64, without a normaliser; based: d = 16, dv = 64, with one.
"""

from measure import Peer, speed_up_tuning

LONGEST_QUADRATIC = 16384


def linear(peer, name):
    def make(batch, length, heads):
        from fla.ops import linear_attn

        function = getattr(linear_attn, name)
        q, k, v = (peer.random(batch, length, heads, 64) for _ in range(3))
        return lambda: function(q, k, v, scale=1.0, normalize=False)

    return make


def based(peer, name):
    def make(batch, length, heads):
        from fla.ops import based as based_ops

        function = getattr(based_ops, name)
        q, k = (peer.random(batch, length, heads, 16) for _ in range(2))
        v = peer.random(batch, length, heads, 64)
        return lambda: function(q, k, v, scale=0.25, use_norm=True)

    return make


def main():
    peer = Peer("fla", ["flash-linear-attention", "fla-core"], __doc__)
    speed_up_tuning()
    for name in ("chunk_linear_attn", "fused_chunk_linear_attn"):
        for length in peer.arguments.lengths:
            peer.prefill(f"{name} d64", length, linear(peer, name))
    for length in peer.arguments.lengths:
        peer.prefill("fused_chunk_based d16 dv64", length, based(peer, "fused_chunk_based"))
    for length in peer.arguments.lengths:
        if length <= LONGEST_QUADRATIC:
            peer.prefill("parallel_based d16 dv64", length, based(peer, "parallel_based"))


if __name__ == "__main__":
    main()
