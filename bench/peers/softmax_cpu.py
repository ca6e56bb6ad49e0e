"""Causal softmax attention of one head by torch's scaled_dot_product_attention on the CPU.

float32, d = dv = 64. Prints `ns N`, nanoseconds per token of the best run, or why it cannot.
"""

import argparse
import sys
import time

try:
    import torch
    from torch.nn.functional import scaled_dot_product_attention
except Exception as error:  # a library that torch needs may be missing, too
    print(f"skipped: torch cannot be imported ({type(error).__name__})")
    sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    q, k, v = (torch.rand(1, 1, arguments.length, 64) - 0.5 for _ in range(3))
    best, runs, stop = float("inf"), 0, time.monotonic() + arguments.seconds
    with torch.no_grad():
        while runs < 3 or (time.monotonic() < stop and runs < 200):
            start = time.perf_counter()
            scaled_dot_product_attention(q, k, v, is_causal=True)
            best, runs = min(best, time.perf_counter() - start), runs + 1
    print(f"ns {1e9 * best / arguments.length:.1f}")


if __name__ == "__main__":
    main()
