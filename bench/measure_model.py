#!/usr/bin/env python3
"""Measure what the model of GPUs predicts: python3 bench/measure_model.py [--build build] [--seconds 150] OUT

First every head is opened, so compiled and verified, by as many processes as there are cores; those of REGRET by each
mechanism that suits it. Then, a call at a time, OUT/candidates.tsv gets each candidate of the heads of REGRET, forced,
and OUT/predict-gpu.tsv what every head takes, after the command that measured it. The cache of kernels is that of the
environment. What is not open when half of --seconds has passed is left out and named; what a call has not measured at
the end, too. bench/regret.py and bench/predict_cuda.py print what comes of it.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

USER, SHAPES = "bench/user_shapes.lua", "bench/shapes.lua"
REGRET = ["p4_12_64", "p2_64_64", "d_12_12_12", "p2_40_40", "p2n_64_64", "p3_16_32", "d_24_40", "p2gn_32_64", "d_16_32",
          "t2g_16_64", "p2_24_96", "t2_16_64", "lg_64_64", "l_64_64", "ln_64_64", "d_8_16_64_32"]  # fmt: skip
REST = ["p2_72_72", "p2g_64_64", "p2gn_64_64", "t2n_16_64", "l_32_32", "p2_20_100", "d_48_48"]
OTHER = ["p2_32_32", "p2_64_32", "p2_96_96", "p2_64_128", "p2_32_128", "p3_16_64", "t2_16_32", "t2_16_128", "t2_32_64",
         "t3_8_64", "lg_32_64", "ln_64_32", "lg_64_128", "l_80_80", "lgn_96_96", "l_128_64", "lg_128_64", "ln_128_128",
         "l_128_256", "l_256_64", "d_16_16", "d_32_32", "d_8_8_8", "d_16_32_128", "tn_16_24"]  # fmt: skip
PORTABLE = ["p2_64_64", "p2n_64_64", "p3_16_32", "t2_16_64", "t2g_16_64", "l_64_64", "lg_64_64", "d_16_32", "d_24_40"]
CALLS = [(4096, 16, 16), (65536, 1, 16)]


def left_of(end):
    return max(end - time.monotonic(), 0.1)


def selection(folder, spec, heads):
    """A spec of some heads of a file that ends in `return heads`."""
    text = pathlib.Path(spec).read_text(encoding="utf-8")
    wanted = ", ".join(f"{head} = true" for head in heads)
    begin = (f"local wanted, kept, head_of = {{ {wanted} }}, {{}}, head\n"
             "local function head(given)\n"
             "  local made = head_of(given)\n"
             "  if wanted[given.name] then kept[#kept + 1] = made end\n"
             "  return made\n"
             "end\n")  # fmt: skip
    path = pathlib.Path(tempfile.mkdtemp(dir=folder)) / pathlib.Path(spec).name
    path.write_text(begin + re.sub(r"return heads\s*$", "return kept\n", text), encoding="utf-8")
    return str(path)


def open_one(fpac, job, end):
    """Whether a head has been opened before the end."""
    spec, head, target, by_all = job
    command = [fpac, "bench", spec, "--head", head, "--target", target, "--length", "64", "--form", "chunked",
               "--repeats", "1"] + ["--candidates"] * by_all  # fmt: skip
    if time.monotonic() >= end:
        return False
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, timeout=left_of(end), check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def open_all(fpac, jobs, end):
    """{(spec, target, by_all): heads that are open}; the first jobs are begun first."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        opened = list(pool.map(lambda job: open_one(fpac, job, end), jobs))
    ready = {}
    for (spec, head, target, by_all), is_open in zip(jobs, opened):
        if is_open:
            ready.setdefault((spec, target, by_all), []).append(head)
        else:
            print(f"left out, not open in time: {head}, {target}")
    return ready


def measure(fpac, folder, out, spec, heads, words, end):
    """Appends to OUT what fpac bench --tsv of these heads writes; a list of candidates begins with its own title."""
    if not heads:
        return
    if "--candidates" not in words:
        with open(out, "a", encoding="utf-8") as lines:
            lines.write(f"# fpac bench {spec} {' '.join(words)}\n")
    command = [fpac, "bench", selection(folder, spec, heads), *words, "--repeats", "5", "--tsv", str(out)]
    begun = time.monotonic()
    try:
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=left_of(end), check=True)
        print(f"{time.monotonic() - begun:5.1f} s, {len(heads)} heads: {spec} {' '.join(words)}", flush=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as failure:
        print(f"not whole: {spec} {' '.join(words)}: {failure}", flush=True)


def words_of(target, form, call):
    length, batch, heads = call
    return ["--target", target, "--form", form, "--length", str(length), "--batch", str(batch), "--heads", str(heads)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--build", default="build")
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--portable", default="cuda:sm_90")
    parser.add_argument("--seconds", type=float, default=150)
    options = parser.parse_args()
    begun = time.monotonic()
    fpac, target, portable = f"{options.build}/fpac", options.target, options.portable
    options.out.mkdir(parents=True, exist_ok=True)
    candidates, lines = options.out / "candidates.tsv", options.out / "predict-gpu.tsv"
    jobs = [(USER, head, target, True) for head in REGRET]
    jobs += [(SHAPES, head, target, False) for head in OTHER] + [(USER, head, target, False) for head in REST]
    jobs += [(USER, head, portable, False) for head in PORTABLE] if portable != target else []
    ready = open_all(fpac, jobs, begun + options.seconds / 2)
    print(f"{time.monotonic() - begun:5.1f} s: open are {sum(map(len, ready.values()))} of {len(jobs)}", flush=True)
    by_all = ready.get((USER, target, True), [])
    users = by_all + ready.get((USER, target, False), [])
    shapes = ready.get((SHAPES, target, False), [])
    by_mma = ready.get((USER, portable, False), []) if portable != target else []
    end = begun + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        for call in CALLS:
            for spec, heads in (USER, users), (SHAPES, shapes):
                measure(fpac, folder, lines, spec, heads, words_of(target, "chunked", call), end)
            measure(fpac, folder, lines, USER, by_mma, words_of(portable, "chunked", call), end)
        measure(fpac, folder, lines, USER, users, words_of(target, "parallel", (1024, 64, 16)), end)
        for call in [*CALLS, (16384, 1, 2)]:
            measure(fpac, folder, candidates, USER, by_all, [*words_of(target, "chunked", call), "--candidates"], end)
    return 0 if by_all and users else 1


if __name__ == "__main__":
    sys.exit(main())
