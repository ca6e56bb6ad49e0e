#!/usr/bin/env python3
"""What kernels are counted as doing, beside what a GPU's counters say:

    ncu --clock-control none --csv --log-file LOG --metrics METRICS build/fpac bench SPEC --target T --length L --batch B
        --heads H --form FORM --repeats 1
    python3 bench/counts.py LOG SPEC --target T --length L --batch B --heads H [--build build]

METRICS are the names in COUNTERS, comma-separated. Counts are those of the emitted geometry (abi/cuda_call.h: struct
fpa_cuda_work), for 16 tokens of a head. Chunks that the counters cannot tell apart are taken as the chunked form has them.
"""
import argparse
import csv
import math
import re
import statistics
import subprocess

COUNTERS = {
    "products": "sm__inst_executed_pipe_tensor.sum",
    "shared": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "instructions": "sm__inst_executed.sum",
    "bytes": "dram__bytes.sum",
}
TENSOR = "sm__pipe_tensor_op_hmma_cycles_active.avg"  # of four pipes, a multiprocessor
NAMES = list(COUNTERS)
KERNELS = ("pack_rows", "chunk_state_small", "chunk_state", "gate_scan", "chunk_output", "fused_chunk", "cluster_scan")


def read_log(path):
    """{(head, kernel): {metric: median}} of an ncu log."""
    launches = {}
    for row in csv.DictReader(line for line in open(path) if line.startswith('"')):
        launch = launches.setdefault(row["ID"], {"kernel": row["Kernel Name"]})
        launch[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    groups = {}
    for launch in launches.values():
        for kernel in KERNELS:
            if launch["kernel"].endswith("_" + kernel):
                groups.setdefault((launch["kernel"][:-len(kernel) - 1], kernel), []).append(launch)
                break
    return {key: {m: statistics.median(x[m] for x in found) for m in found[0] if m != "kernel"}
            for key, found in groups.items()}


def counts_of(build, spec, head, target):
    """The geometry of the emitted text: chunk, and {kernel: (step, copy, keys, by warpgroups)}."""
    text = subprocess.run([f"{build}/fpac", "explain", spec, "--head", head, "--target", target, "--dump=source"],
                          capture_output=True, text=True, check=True).stdout
    text = text[text.index("_geometry = {"):]
    chunk = int(re.search(r"(\d+), /\* chunk \*/", text)[1])
    work = {}
    for line in text[text.index("/* work:"):].splitlines():
        found = re.search(r"\{ (\{.*\}), (\d), \d+ \}, /\* (\w+) \*/", line)
        if found:
            rows = [[int(n) for n in row.split(",")] for row in re.findall(r"\{ ([^{}]*) \}", found[1])]
            work[found[3]] = (*rows, int(found[2]))
    return chunk, work


def counted(kernel, work, chunk, length):
    step, copy, keys, _ = work[kernel]
    before = (math.ceil(length / chunk) - 1) * chunk / length  # tokens but those of one chunk
    per_copy = {"chunk_output": before, "gate_scan": 16 / chunk}.get(kernel, before * 16 / chunk)
    tiles = (chunk + 64) / 2 / 64
    share = before if kernel.startswith("chunk_state") else 1
    result = [share * s + per_copy * c + tiles * k for s, c, k in zip(step, copy, keys)]
    if kernel == "chunk_output":
        result[3] += before * 16 / chunk * work["chunk_state"][1][3]
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("log")
    parser.add_argument("spec")
    parser.add_argument("--build", default="build")
    parser.add_argument("--target", required=True)
    for name in ("length", "batch", "heads"):
        parser.add_argument("--" + name, type=int, required=True)
    options = parser.parse_args()
    steps = options.length * options.batch * options.heads / 16
    ratios = {}
    for (head, kernel), metrics in read_log(options.log).items():
        chunk, work = counts_of(options.build, options.spec, head, options.target)
        expected = counted(kernel, work, chunk, options.length)
        seen = [metrics[COUNTERS[name]] / steps for name in NAMES]
        warpgroups = work[kernel][3]
        seen[0] = metrics[TENSOR] * 132 / 4 / steps / (1 if warpgroups else 1.5)  # clocks of a product
        print(f"{head:16} {kernel:18}", *(f"{name} {e:8.0f} of {s:8.0f}" for name, e, s in zip(NAMES, expected, seen)))
        for name, e, s in zip(NAMES, expected, seen):
            if s > 20:
                ratios.setdefault((kernel, name), []).append(e / s - 1)
    for (kernel, name), values in sorted(ratios.items()):
        sizes = sorted(abs(v) for v in values)
        print(f"{kernel:18} {name:14} {len(values):3} heads: median error {100 * statistics.median(sizes):5.1f} %, "
              f"largest {100 * sizes[-1]:5.1f} %")


if __name__ == "__main__":
    main()
