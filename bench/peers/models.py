"""The heads of specs/models by the packages that their models use: flash-linear-attention, mamba_ssm, retention,
performer-pytorch.

bf16. A case begins with the name of fpac's head. Where a model maps q and k before linear attention (elu + 1,
LoLCATs), torch makes the maps and the package the rest. fla's GLA has a gate for each coordinate of a key where fpac's
head has one a token. Polysketches have no package on an index. tools/peer-wheels.sh fetches the packages for a machine
that reaches none. shares.py says how the cases share --seconds.
"""

import os
import sys
import types

from measure import Peer, Skip, forget_tuning, parse_arguments, speed_up_tuning, version_of
from shares import Turn, end_with_the_parent, share_out

LONGEST_QUADRATIC = 16384


def of_fla(peer, module, name, d, dv, gate=None, longest=None, **options):
    """A function of fla.ops; gate: the name of the argument that log-gates go to."""

    def make(batch, length, heads):
        from importlib import import_module

        if longest and length > longest:
            raise Skip(f"takes every pair of tokens, and {length} are more than {longest}")
        function = getattr(import_module(f"fla.ops.{module}"), name)
        q, k = (peer.random(batch, length, heads, d) for _ in range(2))
        v = peer.random(batch, length, heads, dv)
        given = dict(options)
        if gate:
            shape = (batch, length, heads, d) if module == "gla" else (batch, length, heads)
            given[gate] = peer.random(*shape, low=-0.05, high=0, dtype=peer.torch.float32)
        return lambda: function(q, k, v, **given)

    return make


def of_maps(peer, d, dv, features):
    """Linear attention of q and k that `features` maps first."""

    def make(batch, length, heads):
        from fla.ops.linear_attn import chunk_linear_attn

        q, k = (peer.random(batch, length, heads, d) for _ in range(2))
        v = peer.random(batch, length, heads, dv)
        return lambda: chunk_linear_attn(features(q), features(k), v, scale=1.0, normalize=True)

    return make


def elu_plus_one(peer):
    return lambda x: peer.torch.nn.functional.elu(x) + 1


def hedgehog(peer, d):
    rows = peer.random(d, d // 2, low=-0.1, high=0.1)

    def features(x):
        y = x @ rows
        return peer.torch.cat([y, -y], -1).exp()

    return features


def mamba(peer):
    """Its state space: a group of B and C for each head, as fpac's head has q and k."""

    def make(batch, length, heads):
        try:
            import selective_scan_cuda  # noqa: F401
        except ImportError:  # Mamba-1's scan, an extension in CUDA: the package imports it, Mamba-2 does not call it
            sys.modules["selective_scan_cuda"] = types.ModuleType("selective_scan_cuda")
        from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

        torch = peer.torch
        x = peer.random(batch, length, heads, 64)
        b, c = (peer.random(batch, length, heads, 128) for _ in range(2))
        dt = peer.random(batch, length, heads, low=0.01, high=0.05)
        a = -torch.ones(heads, device="cuda")
        return lambda: mamba_chunk_scan_combined(x, dt, a, b, c, chunk_size=256)

    return make


def power(peer, d, chunk):
    def make(batch, length, heads):
        from retention import power_retention

        q, k, v = (peer.random(batch, length, heads, d) for _ in range(3))
        gate = peer.random(batch, length, heads, low=-0.05, high=0, dtype=peer.torch.float32)
        forget_tuning()
        return lambda: power_retention(q, k, v, log_G=gate, deg=2, scale=d**-0.5, chunk_size=chunk)

    return make


def performer(peer):
    def make(batch, length, heads):
        # brings distutils, which Python has no longer and the package imports
        import setuptools  # noqa: F401
        from performer_pytorch import FastAttention

        attention = FastAttention(dim_heads=64, nb_features=256, causal=True).cuda()
        q, k, v = (peer.random(batch, heads, length, 64) for _ in range(3))
        return lambda: attention(q, k, v)

    return make


FLA = ("fla-core", "flash-linear-attention")

# Case, what makes it of a Peer, and the packages that it needs, any of them. Those that tune longest are last.
CASES = (
    (
        "based_360m fused_chunk_based",
        lambda peer: of_fla(peer, "based", "fused_chunk_based", 16, 64, scale=0.25, use_norm=True),
        FLA,
    ),
    (
        "rebased_d16 parallel_rebased",
        lambda peer: of_fla(peer, "rebased", "parallel_rebased", 16, 64, longest=LONGEST_QUADRATIC),
        FLA,
    ),
    (
        "retnet_d256_v512 chunk_retention",
        lambda peer: of_fla(peer, "retention", "chunk_retention", 256, 512),
        FLA,
    ),
    (
        "mamba2_n128_p64 chunk_simple_gla",
        lambda peer: of_fla(peer, "simple_gla", "chunk_simple_gla", 128, 64, gate="g", scale=1.0),
        FLA,
    ),
    ("mamba2_n128_p64 mamba_chunk_scan", mamba, ("mamba-ssm",)),
    (
        "gla_shape_d128_v256 chunk_simple_gla",
        lambda peer: of_fla(peer, "simple_gla", "chunk_simple_gla", 128, 256, gate="g"),
        FLA,
    ),
    (
        "gla_shape_d128_v256 chunk_gla",
        lambda peer: of_fla(peer, "gla", "chunk_gla", 128, 256, gate="g"),
        FLA,
    ),
    (
        "elu_attention_d64 elu by torch, chunk_linear_attn",
        lambda peer: of_maps(peer, 64, 64, elu_plus_one(peer)),
        FLA,
    ),
    (
        "lolcats_llama3_8b maps by torch, chunk_linear_attn",
        lambda peer: of_maps(peer, 128, 128, hedgehog(peer, 128)),
        FLA,
    ),
    ("performer_d64_m256 FastAttention", performer, ("performer-pytorch",)),
    ("power_retention_d64 chunk 512", lambda peer: power(peer, 64, 512), ("retention",)),
    ("power_retention_d64 chunk 1024", lambda peer: power(peer, 64, 1024), ("retention",)),
    ("powercoder_3b chunk 1024", lambda peer: power(peer, 128, 1024), ("retention",)),
)


def version_of_any(packages):
    return next((found for found in map(version_of, packages) if found), None)


def measure_case(case, arguments):
    """One case, in a process of its own."""
    end_with_the_parent()
    _, make, needed = next(found for found in CASES if found[0] == case)
    peer = Peer(needed[0].split("-")[0], list(needed), __doc__, arguments)
    speed_up_tuning()
    for length in arguments.lengths:
        peer.prefill(case, length, lambda *sizes: make(peer)(*sizes))


def main():
    arguments = parse_arguments(__doc__, seconds=240, case=True)
    if arguments.case:
        measure_case(arguments.case, arguments)
        return
    turns = []
    for case, _, needed in CASES:
        if arguments.only in case:
            turn = Turn(needed[0].split("-")[0], case, arguments.lengths)
            if version_of_any(needed):
                turns.append(turn)
            else:
                turn.skip(f"{' or '.join(needed)} is not installed")
    if turns:
        share_out(turns, lambda case, lengths: command_of(case, lengths, arguments), arguments.seconds, arguments.seconds / 2)


def command_of(case, lengths, arguments):
    sizes = ["--tokens", arguments.tokens, "--heads", arguments.heads, "--repeats", arguments.repeats]
    wanted = ["--case", case, "--lengths", ",".join(map(str, lengths)), "--seconds", arguments.seconds, *sizes]
    return [sys.executable, os.path.abspath(__file__), *map(str, wanted)]


if __name__ == "__main__":
    main()
