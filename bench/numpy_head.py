"""The degree-2 head as one would write it with NumPy and its BLAS: explicit features, a state, chunks.

d = dv = 64, blocks of 8 as in the paper's appendix, squares of blocks whole (2304 features; fpac halves them and has
2112), causal, float32, one head. Prints `ns N`: nanoseconds per token, of the best chunk's best run; or why
it cannot. The number of threads is OPENBLAS_NUM_THREADS.
"""

import argparse
import sys
import time

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed")
    sys.exit(1)

D, DV, BLOCK = 64, 64, 8
CHUNKS = (128, 256, 512)


def features(x, weight):
    """Products of a block with itself and, times weight, with all that follow it."""
    parts = []
    for first in range(0, D, BLOCK):
        block = x[:, first : first + BLOCK, None]
        rest = x[:, None, first:].copy()
        rest[:, :, BLOCK:] *= weight
        parts.append((block * rest).reshape(len(x), -1))
    return np.concatenate(parts, axis=1)


def forward(q, k, v, chunk):
    state = np.zeros((2304, DV), np.float32)
    o = np.empty_like(v)
    seen = np.tril(np.ones((chunk, chunk), np.float32))
    for first in range(0, len(q), chunk):
        here = slice(first, first + chunk)
        scores = q[here] @ k[here].T
        scores *= scores
        scores *= seen[: len(scores), : len(scores)]
        o[here] = features(q[here], 1) @ state + scores @ v[here]
        state += features(k[here], 2).T @ v[here]
    return o


def check(q, k, v):
    scores = np.tril(q @ k.T).astype(np.float64) ** 2
    expected = scores @ v
    error = np.abs(forward(q, k, v, 64) - expected).max() / np.abs(expected).max()
    if error > 1e-4:
        sys.exit(f"the program is wrong: off by {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=4)
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    q, k, v = (random.random((arguments.length, width), np.float32) - 0.5 for width in (D, D, DV))
    check(q[:300], k[:300], v[:300])
    best = float("inf")
    for chunk in CHUNKS:
        for _ in range(arguments.repeats):
            start = time.perf_counter()
            forward(q, k, v, chunk)
            best = min(best, time.perf_counter() - start)
    print(f"ns {1e9 * best / arguments.length:.1f}")


if __name__ == "__main__":
    main()
