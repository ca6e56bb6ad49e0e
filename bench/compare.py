#!/usr/bin/env python3
"""Two builds of fpac on one GPU, interleaved: python3 bench/compare.py OLD NEW [--rounds 5] [--tsv FILE]

OLD and NEW are folders with the program fpac (make gpu-pack makes such). Every head is timed at every length by both,
turn by turn, so that what the chip does meanwhile meets both; the table has the medians in ns per token and head, and
NEW over OLD. Ends with status 1 when a line is slower by more than --most percent.
"""
import argparse
import json
import statistics
import subprocess
import sys

HEADS = [  # spec, head; bf16
    ("specs/tspow.lua", "tspow2_d64_b8"),
    ("specs/gated.lua", "gated_power2_d64"),
    ("specs/linear.lua", "linear_d64"),
    ("specs/gated.lua", "gated_linear_d32"),
    ("specs/taylor.lua", "taylor2_d16"),
    ("bench/shapes.lua", "p2_128_64"),
    ("bench/shapes.lua", "p2_48_48"),
    ("bench/shapes.lua", "d_32_32"),
    ("bench/shapes.lua", "d_8_8_8"),
    ("specs/trainable.lua", "trainable_dense"),
]
SIZES = [(65536, 1, "chunked"), (4096, 16, "chunked"), (1, 128, "recurrent")]  # length, batch, form; 16 heads


def time_of(build, spec, head, length, batch, form):
    command = [f"{build}/fpac", "bench", spec, "--head", head, "--dtype", "bf16", "--target", "cuda", "--heads", "16",
               "--length", str(length), "--batch", str(batch), "--form", form, "--json"]
    out = subprocess.run(command, capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{' '.join(command)}: {out.stderr.strip()}")
    row = json.loads(out.stdout)[0]
    return row["ns_per_token_and_head"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=float, default=2.0)
    parser.add_argument("--tsv")
    options = parser.parse_args()
    lines = ["head\tlength\told\tnew\tnew/old"]
    slower = []
    for spec, head in HEADS:
        for length, batch, form in SIZES:
            times = {options.old: [], options.new: []}
            for _ in range(options.rounds):
                for build in times:
                    times[build].append(time_of(build, spec, head, length, batch, form))
            old, new = (statistics.median(t) for t in times.values())
            lines.append(f"{head}\t{length}\t{old:.4f}\t{new:.4f}\t{new / old:.4f}")
            print(lines[-1], flush=True)
            if new > old * (1 + options.most / 100):
                slower.append(lines[-1])
    if options.tsv:
        with open(options.tsv, "w") as file:
            file.write("\n".join(lines) + "\n")
    for line in slower:
        print(f"slower: {line}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
