"""Causal softmax attention by torch's scaled_dot_product_attention: cuDNN's kernel and FlashAttention's.

bf16, d = dv = 64 and 128; q, k, v lie as [batch, length, heads, d], as they do for fpac.
"""

from measure import Peer

BACKENDS = (("cudnn", "CUDNN_ATTENTION"), ("flash", "FLASH_ATTENTION"))


def forward(peer, backend, d):
    def make(batch, length, heads):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.functional import scaled_dot_product_attention

        chosen = getattr(SDPBackend, backend)
        q, k, v = (peer.random(batch, length, heads, d).transpose(1, 2) for _ in range(3))

        def run():
            with sdpa_kernel(chosen):
                return scaled_dot_product_attention(q, k, v, is_causal=True)

        return run

    return make


def main():
    peer = Peer("torch", ["torch"], __doc__)
    for d in (64, 128):
        for length in peer.arguments.lengths:
            for name, backend in BACKENDS:
                peer.prefill(f"softmax {name} d{d}", length, forward(peer, backend, d))


if __name__ == "__main__":
    main()
