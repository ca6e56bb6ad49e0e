"""Power attention of degree 2 by the package `retention`: forward and decode, its Triton kernels.

bf16, d = dv = 64, no gate; it always normalises. The state has 2560 features, in bf16, and 2560 sums of
keys in fp32. A decode step queries the state and the tokens that are not in it yet (`cache`); one token
more goes into the state with `update`.
"""

from measure import Peer, Skip, forget_tuning, speed_up_tuning

D = 64
CHUNKS = (1024, 512, 2048)
CACHE = 256  # tokens that wait to be put into the state: half of the package's default of 512
MANY_BYTES = 240 << 20  # of operands taken in turn: four times the second-level cache of an H200
BATCHES = (128, 32, 8, 1)


def forward(peer, chunk):
    """chunk None: over all pairs."""

    def make(batch, length, heads):
        from retention import power_retention

        q, k, v = (peer.random(batch, length, heads, D) for _ in range(3))
        return lambda: power_retention(q, k, v, deg=2, scale=D**-0.5, chunk_size=chunk)

    return make


def features():
    from retention._update_state.triton import compute_expanded_dim

    return compute_expanded_dim(D, 2, 16)


def make_step(peer, batch, heads, update):
    """One decode step with operands of its own."""
    from retention import power_retention_inference

    torch, count = peer.torch, features()
    cached = 1 if update else CACHE
    q = peer.random(batch, 1, heads, D)
    k, v = (peer.random(batch, cached, heads, D) for _ in range(2))
    state = peer.random(batch, heads, count, D)
    keys = peer.random(batch, heads, count, low=0.1, high=1, dtype=torch.float32)
    # without an update: more tokens than there are in the cache would have to wait
    switch = 1 if update else 2 * CACHE

    def run():
        return power_retention_inference(q, k, v, None, state, keys, deg=2, scale=D**-0.5,
                                         switch_over_seq_len=switch)

    return run


def decode(peer, update):
    def make(batch, length, heads):
        if length != 1:
            raise Skip("a step is one token")
        state_bytes = batch * heads * features() * D * 2
        sets = min(64, MANY_BYTES // state_bytes + 1)
        return [make_step(peer, batch, heads, update) for _ in range(sets)]

    return make


def measure_prefill(peer):
    lengths = peer.arguments.lengths
    for length in lengths:
        for chunk in CHUNKS:
            if length > chunk:
                peer.prefill(f"power p2 d{D} chunk {chunk}", length, forward(peer, chunk))
    for length in lengths:
        if length <= 4096:
            peer.prefill(f"power p2 d{D} attention", length, forward(peer, None))


def measure_decode(peer):
    for name, update in ((f"cache {CACHE}", False), ("update", True)):
        for batch in BATCHES:
            peer.measure(f"power p2 d{D} step, {name}", 1, batch, decode(peer, update))
        peer.measure(f"power p2 d{D} step, {name}, graph", 1, 1, decode(peer, update), graph=True)


def main():
    peer = Peer("retention", ["retention"], __doc__)
    speed_up_tuning()
    measure_prefill(peer)
    forget_tuning()  # kernels tuned for chunks of 1024 queries would decode one slowly
    measure_decode(peer)


if __name__ == "__main__":
    main()
