"""What the tests share: small heads, random operands, the command fpac, and a reason to skip without NumPy."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "python"))

try:
    import numpy as np
except ImportError:
    raise unittest.SkipTest(f"NumPy is not installed for {sys.executable}") from None

import fpac  # noqa: E402
from fpac import abi  # noqa: E402,F401

COMMAND = Path(os.environ.get("FPAC", TOP / "build" / "fpac")).resolve()
LIBRARY = Path(os.environ.get("FPAC_LIBRARY", TOP / "build" / "libfpa.so")).resolve()
if "FPAC_LIBRARY" in os.environ:
    os.environ["FPAC_LIBRARY"] = str(LIBRARY)  # tests work in folders of their own

# Small, so that each is compiled and verified in a second or two.
SPEC = """
local square = power { degree = 2 }
return {
  head { name = "plain", d = 8, dv = 4, terms = square },
  head { name = "mean", d = 8, dv = 8, scale = 1 / 4, normalize = "sum", terms = square },
  head { name = "gated", d = 8, dv = 8, terms = linear {}, gate = true },
  head { name = "full", d = 8, dv = 4, causal = false, terms = linear {} },
  head { name = "trained", d = 8, dv = 4, normalize = { "sum", eps = 1e-3 },
         terms = term { trainable { name = "A", rows = 3 }, trainable { name = "B", rows = 5, shared = true } } },
  head { name = "weighted", d = 8, dv = 4, terms = term { trainable { name = "g", diagonal = true } } },
  head { name = "half", d = 8, dv = 8, dtype = "f16", normalize = "sum", scale = 1 / 4, terms = square },
  head { name = "turned", d = 8, dv = 4, positions = 2, key_mask = true, normalize = { "sum", eps = 1e-3 },
         terms = term { coordinates { identity(), map = softplus, angle = "a", phase = "b", amplitude = "c" } } },
  head { name = "counted", d = 8, dv = 4, positions = 1,
         terms = term { coordinates { identity(), map = elu_plus_one, angle = "a" } } },
  head { name = "windowed", d = 8, dv = 4, window = 9, scale = 1 / 2, normalize = "sum",
         terms = taylor { degree = 2 } },
  head { name = "brain", d = 8, dv = 8, dtype = "bf16", normalize = "sum", scale = 1 / 4, terms = square },
}
"""


@functools.cache
def head(name: str, target: str | None = None) -> fpac.Head:
    """One head of SPEC, opened once for all tests."""
    return fpac.head(SPEC, name, target, file="tests.lua")


def numbers(seed: int, *shape: int, dtype: str = "float32") -> np.ndarray:
    """Normal numbers, the same ones for the same seed."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def operands(about, length: int, batch: int = 2, heads: int = 2, query_heads: int | None = None, dtype="float32"):
    """q, k, v for a head."""
    q = numbers(1, batch, length, query_heads or heads, about.d, dtype=dtype)
    k = numbers(2, batch, length, heads, about.d, dtype=dtype)
    v = numbers(3, batch, length, heads, about.dv, dtype=dtype)
    return q, k, v


def log_gates(length: int, batch: int = 2, heads: int = 2) -> np.ndarray:
    """Natural logarithms of gates, at most 0."""
    return -np.abs(numbers(4, batch, length, heads)) / 8


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Of one shape and dtype, and not a bit differs."""
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def run_command(name: str, q, k, v, *, form=None, log_gate=None, weights=None, state=None, **tokens):
    """o and the state as `fpac run` computes them, of float32 files."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tests.lua").write_text(SPEC)
        words = [str(COMMAND), "run", "tests.lua", "--head", name, "-o", "o.npy", "--state-out", "s.npy"]
        files = {"--q": q, "--k": k, "--v": v, "--log-gate": log_gate, "--state-in": state}
        files |= {f"--{word.replace('_', '-')}": array for word, array in tokens.items()}
        for option, array in files.items():
            if array is not None:
                np.save(Path(folder) / f"{option[2:]}.npy", array)
                words += [option, f"{option[2:]}.npy"]
        for weight, array in (weights or {}).items():
            np.save(Path(folder) / f"w{weight}.npy", array)
            words += ["--weights", f"{weight}=w{weight}.npy"]
        if form:
            words += ["--form", form]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"{' '.join(words)}: {done.stderr}")
        return np.load(Path(folder) / "o.npy"), np.load(Path(folder) / "s.npy")


def formula(about, q, k, v, gate=None, causal=True):
    """The sum of (q.k)^2 v, over its normaliser, or of gated q.k v, in double precision."""
    q, k, v = (array.astype("float64") for array in (q, k, v))
    repeat = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, repeat, 2), np.repeat(v, repeat, 2)
    score = np.einsum("blhd,bmhd->bhlm", q, k)
    score = score if about.gate or not causal else (score * (0.25 if about.normalized else 1)) ** 2
    if causal:
        score = np.tril(score)
    if gate is not None:
        total = np.repeat(np.cumsum(gate.astype("float64"), 1), repeat, 2).transpose(0, 2, 1)
        score = score * np.exp(np.tril(total[..., :, None] - total[..., None, :]))
    if about.normalized:
        score = score / score.sum(-1, keepdims=True)
    return np.einsum("bhlm,bmhd->blhd", score, v)
