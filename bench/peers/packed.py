"""Sequences of different lengths in one call: linear attention by flash-linear-attention, softmax by PyTorch's, FlashAttention's and FlashInfer's.

The mixes of bench/bench_sequences.c, bf16, d = dv = 64; causal. Lines are of one batch of all tokens. FlashInfer plans a call on the
host when it knows the lengths; that is not timed. A package that is not installed is named, once, in a line of what is skipped.
"""

from inspect import signature

from measure import Peer, speed_up_tuning

MIXES = (2048, 16384, 65536)
EQUAL = (1024, 4096)
FLASHINFER_WORKSPACE = 128 * 1024 * 1024  # bytes, as its examples have


def draw(total, most):
    """Lengths between 1 and most, as many short ones as long ones on a scale of logarithms: bench_sequences' draw()."""
    state, lengths = 12345, []
    while sum(lengths) < total:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        length = max(1, int(most ** ((state >> 40) * 2.0**-24)))
        lengths.append(min(length, total - sum(lengths)))
    return lengths


def mixes(total):
    for length in EQUAL:
        yield f"{length} each", [length] * (total // length)
    yield "one", [total]
    for most in MIXES:
        if most <= total:
            yield f"1 to {most}", draw(total, most)


def offsets_of(peer, lengths, dtype):
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    return peer.torch.tensor(ends, dtype=dtype, device="cuda")


def linear(peer, lengths):
    def make(batch, length, heads):
        from fla.ops.linear_attn import chunk_linear_attn

        q, k, v = (peer.random(batch, length, heads, 64) for _ in range(3))
        offsets = offsets_of(peer, lengths, peer.torch.int64)
        return lambda: chunk_linear_attn(q, k, v, scale=1.0, normalize=False, cu_seqlens=offsets)

    return make


def softmax(peer, lengths):
    def make(batch, length, heads):
        from torch.nn.attention.varlen import varlen_attn

        # the name of the mask has changed between versions
        causal = {"is_causal": True} if "is_causal" in signature(varlen_attn).parameters else {"window_size": (-1, 0)}
        q, k, v = (peer.random(length, heads, 64) for _ in range(3))
        offsets, most = offsets_of(peer, lengths, peer.torch.int32), max(lengths)
        return lambda: varlen_attn(q, k, v, offsets, offsets, most, most, **causal)

    return make


def flash(peer, lengths):
    def make(batch, length, heads):
        from flash_attn import flash_attn_varlen_func

        q, k, v = (peer.random(length, heads, 64) for _ in range(3))
        offsets, most = offsets_of(peer, lengths, peer.torch.int32), max(lengths)
        return lambda: flash_attn_varlen_func(q, k, v, offsets, offsets, most, most, causal=True)

    return make


def flashinfer(peer, lengths):
    def make(batch, length, heads):
        from flashinfer import BatchPrefillWithRaggedKVCacheWrapper

        torch = peer.torch
        q, k, v = (peer.random(length, heads, 64) for _ in range(3))
        offsets = offsets_of(peer, lengths, torch.int32)
        wrapper = BatchPrefillWithRaggedKVCacheWrapper(
            torch.empty(FLASHINFER_WORKSPACE, dtype=torch.uint8, device="cuda"), "NHD"
        )
        wrapper.plan(offsets, offsets, heads, heads, 64, causal=True, q_data_type=torch.bfloat16)
        return lambda: wrapper.run(q, k, v)

    return make


FAMILIES = (
    ("fla chunk_linear_attn d64", ("flash-linear-attention", "fla-core"), linear),
    ("torch varlen_attn d64", ("torch",), softmax),
    ("flash_attn_varlen_func d64", ("flash-attn",), flash),
    ("flashinfer ragged prefill d64", ("flashinfer-python",), flashinfer),
)


def main():
    peer = Peer("packed", ["torch"], __doc__)
    speed_up_tuning()
    found = [(case, peer.find(case, *packages), make) for case, packages, make in FAMILIES]
    for name, lengths in mixes(peer.arguments.tokens):
        for case, version, make in found:
            if version:
                peer.version = version
                peer.measure(f"{case}, {name}", sum(lengths), 1, make(peer, lengths))


if __name__ == "__main__":
    main()
