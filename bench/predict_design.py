#!/usr/bin/env python3
"""What fpac design predicts now of heads that were measured: python3 bench/predict_design.py [--gpu h100] DESIGN.txt

DESIGN.txt has tables of `fpac design --measure`, each after its command (bench/results/current/design.txt). The same
command without --measure predicts again, for a row of the table of GPUs: the GPU need not be here. Each head's times,
predicted and measured, ns a token and head, the error, predicted over measured less one, and the medians.
"""

import argparse
import json
import re
import statistics
import subprocess

ROW = re.compile(r"^\*? +\d+  (?P<label>.+?) {2,}\d+ +[\d.]+ [KMG]iB .* (?P<prefill>[\d.]+) +(?P<decode>[\d.]+)$")
NOT_PREDICTED = {"--measure", "--target", "--gpu", "--device", "--rows"}


def read(path):
    """(options of the command, [(head, measured prefill, measured decode)]) of each table."""
    tables = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("$ fpac design "):
                words = line.split()[3:]
                options = [w for name, value in zip(words[::2], words[1::2]) if name not in NOT_PREDICTED
                           for w in (name, value)]  # fmt: skip
                tables.append((options, []))
            elif tables and (row := ROW.match(line.rstrip())):
                tables[-1][1].append((row["label"], float(row["prefill"]), float(row["decode"])))
    return tables


def predict(build, options, gpu, target):
    command = [f"{build}/fpac", "design", *options, "--target", target, "--gpu", gpu, "--rows", "1000", "--json"]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return {row["label"]: row for row in json.loads(out.stdout)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("tables", help="design.txt")
    parser.add_argument("--build", default="build")
    parser.add_argument("--gpu", default="h100", help="that was measured (%(default)s)")
    parser.add_argument("--target", default="cuda:sm_90a", help="of its kernels (%(default)s)")
    given = parser.parse_args()
    for options, measured in read(given.tables):
        print("$ fpac design", *options)
        print(f"{'head':26}" + "".join(f" {kind:>9} {'measured':>9} {'error':>8}" for kind in ("prefill", "decode")))
        predicted = predict(given.build, options, given.gpu, given.target)
        errors = {"prefill": [], "decode": []}
        for label, prefill, decode in measured:
            line = f"{label:26}"
            for kind, ns in (("prefill", prefill), ("decode", decode)):
                said = predicted[label][f"{kind}_ns"]
                errors[kind].append(abs(said / ns - 1))
                line += f" {said:9.4g} {ns:9.4g} {100 * (said / ns - 1):+6.1f} %"
            print(line)
        print(f"{len(measured)} heads, median error: " + ", ".join(
            f"{kind} {100 * statistics.median(errors[kind]):.1f} %" for kind in errors))  # fmt: skip
        print()


if __name__ == "__main__":
    main()
