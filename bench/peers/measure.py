"""What the scripts of this folder share: arguments, random operands, timing, lines.

A script measures one family of packages and prints, with a tab between two fields,

    peer, version, case, length, batch, heads, ns per token and head, ms a forward

for each case, and `skipped, peer, case, why` for each that it cannot measure: a package that is not
installed, a case that fails, no time left. `fpac plot` reads both, with the lines of `fpac bench --tsv`.

Medians of at least 20 runs (fewer only where they would take seconds), timed by CUDA events after a
warm-up. A kernel that only waits goes first, so that a run's launches are queued when its clock starts:
what is measured is the device's time, not Python's.
"""

import argparse
import gc
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

HEADS = 16
TOKENS = 65536  # batch * length of a forward
LENGTHS = (65536, 16384, 4096, 1024)
WARM_UPS = 3
LEAST_REPEATS = 5
WAIT_CYCLES = 6_000_000  # of the device's clock: about 3 ms


class Skip(Exception):
    """A case cannot be measured here; the text says why."""


def parse_arguments(description, seconds=90, case=False):
    """seconds: the default of --seconds; case: the script has --case NAME, too."""
    parser = argparse.ArgumentParser(description=description.strip().splitlines()[0])
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="tokens a sequence: 4096,1024")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="batch * length (%(default)s)")
    parser.add_argument("--heads", type=int, default=HEADS, help="heads of q, k and v (%(default)s)")
    parser.add_argument("--repeats", type=int, default=25, help="runs of a case (%(default)s)")
    parser.add_argument("--seconds", type=float, default=seconds, help="no case begins later (%(default)s)")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    if case:
        parser.add_argument("--case", help="this one alone, in this process")
    arguments = parser.parse_args()
    arguments.lengths = [int(length) for length in arguments.lengths.split(",") if length]
    return arguments


def one_line(error):
    """What went wrong, in one line without tabs."""
    text = str(error).strip()
    first = text.splitlines()[0] if text else ""
    if isinstance(error, Skip):
        return first
    return " ".join(f"{type(error).__name__}: {first}".split())[:200]


class Peer:
    """One family of packages: prints its lines.

    name is the first field of each, package what its version is asked of; a list: the first that is
    installed.
    """

    def __init__(self, name, packages, description, arguments=None):
        self.name = name
        self.arguments = arguments or parse_arguments(description)
        self.end = time.monotonic() + self.arguments.seconds
        self.torch = None
        self.version = next((v for v in map(version_of, packages) if v), None)
        if self.version is None:
            self.stop(Skip(f"{' or '.join(packages)} is not installed"))
        self.torch = self.load_torch()

    def load_torch(self):
        try:
            import torch
        except Exception as error:  # a library that it needs may be missing, too
            self.stop(error)
        if not torch.cuda.is_available():
            self.stop(Skip("torch sees no GPU"))
        print(f"# {self.name} {self.version}; torch {torch.__version__}; {torch.cuda.get_device_name()}", flush=True)
        torch.manual_seed(1)
        return torch

    def find(self, case, *packages):
        """The version of the first of the packages that is installed; None, and a line says so, where none is."""
        version = next((v for v in map(version_of, packages) if v), None)
        if version is None:
            self.skip(case, Skip(f"{' or '.join(packages)} is not installed"))
        return version

    def skip(self, case, error):
        reason = one_line(error)
        print(f"skipped\t{self.name}\t{case}\t{reason}", flush=True)
        print(f"{os.path.basename(sys.argv[0])}: {case}: {reason}", file=sys.stderr, flush=True)

    def stop(self, error):
        """None of the cases can be measured. That is no failure of the run."""
        self.skip("all", error)
        sys.exit(0)

    def random(self, *shape, low=-0.5, high=0.5, dtype=None):
        torch = self.torch
        values = torch.rand(shape, device="cuda", dtype=torch.float32) * (high - low) + low
        return values.to(dtype or torch.bfloat16)

    def batch(self, length):
        return max(1, self.arguments.tokens // length)

    def prefill(self, case, length, make):
        """Measure make(batch, length, heads), which returns a function that does one forward."""
        self.measure(case, length, self.batch(length), make)

    def measure(self, case, length, batch, make, graph=False):
        """The same for any batch. make may return several functions: they are called in turn, so that no
        cache holds their operands. graph: each is replayed as a CUDA graph."""
        if self.arguments.only not in case:
            return
        try:
            if time.monotonic() > self.end:
                raise Skip(f"the {self.arguments.seconds:g} s of --seconds are over")
            with self.torch.no_grad():
                made = make(batch, length, self.arguments.heads)
                runs = made if isinstance(made, list) else [made]
                if graph:
                    runs = [capture(self.torch, run) for run in runs]
                seconds = time_runs(self.torch, runs, self.arguments.repeats)
            self.print_line(case, length, batch, seconds)
        except Exception as error:  # one case that fails must not stop the others
            self.skip(f"{case}, length {length}, batch {batch}", error)
        finally:
            made = runs = None
            gc.collect()
            free_memory(self.torch)

    def print_line(self, case, length, batch, seconds):
        heads = self.arguments.heads
        nanoseconds = 1e9 * seconds / (batch * length * heads)
        fields = (self.name, self.version, case, length, batch, heads, f"{nanoseconds:.6g}", f"{1e3 * seconds:.6g}")
        print(*fields, sep="\t", flush=True)


def version_of(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def free_memory(torch):
    try:
        torch.cuda.empty_cache()
    except Exception:  # the device is lost to an error that was told already
        pass


# ---- timing ----


def wait_on_device(torch):
    if hasattr(torch.cuda, "_sleep"):
        torch.cuda._sleep(WAIT_CYCLES)


def time_once(torch, run):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    wait_on_device(torch)
    begin.record()
    run()
    end.record()
    end.synchronize()
    return 1e-3 * begin.elapsed_time(end)


def time_runs(torch, runs, repeats, most_seconds=4):
    """The median of repeats runs, taken in turn; fewer when they take longer than most_seconds."""
    for i in range(max(WARM_UPS, len(runs))):
        runs[i % len(runs)]()
    torch.cuda.synchronize()
    samples, stop = [], time.monotonic() + most_seconds
    for i in range(repeats):
        if i >= LEAST_REPEATS and time.monotonic() > stop:
            break
        samples.append(time_once(torch, runs[i % len(runs)]))
    return statistics.median(samples)


def capture(torch, run):
    """A function that replays one run as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


# ---- Triton ----


def speed_up_tuning():
    """Triton compiles the candidates of an autotuned kernel one by one and times each for 125 ms: minutes
    for a package with hundreds of them. Compile all at once on all cores, and time each for 40 ms. The
    kernels are the same. Does nothing with a Triton that has no such interface."""
    try:
        from triton.runtime._async_compile import AsyncCompileMode
        from triton.runtime.autotuner import Autotuner
        from triton.testing import do_bench
    except ImportError:
        return
    choose = Autotuner.prune_configs

    def compile_candidates(tuner, kwargs):
        candidates = choose(tuner, kwargs)
        call = {name: value for name, value in kwargs.items() if name != "warmup"}
        try:
            with ThreadPoolExecutor(os.cpu_count()) as pool, AsyncCompileMode(pool, ignore_errors=True):
                for candidate in candidates:
                    tuner.fn.warmup(*tuner.nargs.values(), **call, **candidate.all_kwargs())
        except Exception as error:  # the tuner compiles by itself then, and tells what is wrong
            print(f"# candidates are compiled one by one: {one_line(error)}", flush=True)
        return candidates

    Autotuner.prune_configs = compile_candidates
    Autotuner.do_bench = property(lambda tuner: lambda call, quantiles: do_bench(
        call, warmup=10, rep=40, quantiles=quantiles))


def forget_tuning():
    """Let autotuned kernels choose anew: a choice made for another shape may not suit the next."""
    from triton.runtime.autotuner import Autotuner

    for item in gc.get_objects():
        if issubclass(type(item), Autotuner):  # isinstance would wake lazy objects
            item.cache.clear()
            item.cache_results = False
