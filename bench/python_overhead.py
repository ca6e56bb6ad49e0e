"""What a call of a head from Python costs beyond the C call: medians of many, in microseconds.

    python3 bench/python_overhead.py                          NumPy, and torch where it is installed, on the CPU
    python3 bench/python_overhead.py --target cuda            torch on the GPU, in a stream, launched and not waited for
    python3 bench/python_overhead.py --calls 20000 --limit 10 status 1 when a call of a head costs more than that
    python3 bench/python_overhead.py --least                  the least of means of 100 calls: where other programs run

One token of a small head, so that C has little to do. The C call is fpa_forward with its arguments ready, by
ctypes, less a call by ctypes of a function that does nothing. Operators (torch.ops.fpac) are what compiled graphs call.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

import fpac  # noqa: E402
from fpac.call import STATE_DROPPED, STATE_UPDATED, Operands, Prepared  # noqa: E402
from fpac.kinds import kind_of  # noqa: E402
from fpac.library import library  # noqa: E402

SPEC = "return head { name = 'small', d = 64, dv = 64, scale = 1 / 8, normalize = 'sum', terms = power { degree = 2 } }"
ROUND = 100  # calls between waits for a GPU, whose queue is longer


def least_means(functions, calls, wait):
    """The least mean of a round of calls of each, in microseconds: what a busy machine troubles least."""
    least = [float("inf")] * len(functions)
    for _ in range(-(-calls // ROUND) + 1):
        for i, function in enumerate(functions):
            begin = time.perf_counter_ns()
            for _ in range(ROUND):
                function()
            least[i] = min(least[i], (time.perf_counter_ns() - begin) / ROUND / 1e3)
            wait()
    return least


def medians(functions, calls, wait):
    """Of the times of single calls of each, in microseconds; they take turns, so that a busy machine troubles all."""
    times = [[] for _ in functions]
    for _ in range(-(-calls // ROUND) + 1):
        for function, mine in zip(functions, times):
            for _ in range(ROUND):
                begin = time.perf_counter_ns()
                function()
                mine.append(time.perf_counter_ns() - begin)
            wait()
    return [statistics.median(mine[ROUND:]) / 1e3 for mine in times]


def c_call(head, q, k, v, state):
    """fpa_forward of the same operands with everything ready: what it does, and what has to stay alive."""
    kind = kind_of("k", k)
    form, keeps = (-1, STATE_DROPPED) if state is None else (2, STATE_UPDATED)
    operands = Operands(q, k, v, None, state, (), form, 0, keeps)
    prepared = Prepared(head._calls.kernel(), head._calls.widths, kind, operands)
    o, _ = prepared.run(kind, operands)
    memory, workspace = kind.scratch(prepared.size, k) if prepared.size else (None, None)
    p, forward = prepared, prepared.forward
    arguments = (p.kernel_at, form, p.tensors_at, workspace, p.size, p.error_at)
    return (lambda: forward(*arguments)), (prepared, o, memory)


def rows(head, arrays, is_torch):
    """Name, call and state of each way to call."""
    q, k, v = arrays
    state = head.new_state(k)
    yield "head(q, k, v)", lambda: head(q, k, v), None
    yield "head.step", lambda: head.step(q, k, v, state), state
    if is_torch:
        import torch

        key, forward, step = head.key, torch.ops.fpac.forward.default, torch.ops.fpac.step.default
        yield "ops.fpac.forward", lambda: forward(key, q, k, v, None, None, None, -1, 0), None
        yield "ops.fpac.step", lambda: step(key, q, k, v, state, None, None), state


def kinds(target):
    """What makes arrays, and what waits, of each kind that is installed."""
    try:
        import torch
    except ImportError:
        torch = None
    if target.startswith("cuda"):
        return {"torch, GPU": (lambda *shape: torch.randn(shape, device="cuda"), torch.cuda.synchronize, True)}
    found = {}
    try:
        import numpy

        source = numpy.random.default_rng(0)
        found["NumPy"] = (lambda *shape: source.standard_normal(shape, "float32"), lambda: None, False)
    except ImportError:
        pass
    if torch:
        found["torch"] = (lambda *shape: torch.randn(shape), lambda: None, True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="c")
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--least", action="store_true", help="not medians, but the least of means of 100 calls")
    parser.add_argument("--limit", type=float, help="most microseconds that a call of a head may cost")
    options = parser.parse_args()
    head = fpac.head(SPEC, target=options.target)
    kept, measure = ("least means", least_means) if options.least else ("medians", medians)
    print(f"{head}; {kept} of {options.calls} calls in us")
    close = library().fpa_close
    print(f"{'arrays':<12} {'call':<18} {'call':>8} {'C call':>8} {'overhead':>9}")
    worst = 0.0
    for name, (make, wait, is_torch) in kinds(options.target).items():
        arrays = [make(1, 1, 1, 64) for _ in range(3)]
        for what, call, state in rows(head, arrays, is_torch):
            c, _alive = c_call(head, *arrays, state)
            whole, alone, empty = measure([call, c, lambda: close(None)], options.calls, wait)
            alone -= empty
            print(f"{name:<12} {what:<18} {whole:8.2f} {alone:8.2f} {whole - alone:9.2f}")
            if what.startswith("head"):
                worst = max(worst, whole - alone)
    return options.limit is not None and worst > options.limit


if __name__ == "__main__":
    sys.exit(main())
