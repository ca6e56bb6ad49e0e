#!/usr/bin/env python3
"""The model of GPUs against measurements: python3 bench/predict_cuda.py [--build build] [--gpu NAME] LINES.tsv

LINES.tsv has lines of `fpac bench --tsv`, each group after a comment with the command that measured it:
    # fpac bench bench/shapes.lua --target cuda:sm_90a --form chunked --length 4096 --batch 16 --heads 16
What the model predicts is what `fpac explain` says of the fastest candidate of the same call. The table has both, what
limits the prediction, and the error: predicted over measured, less one; then the medians. --gpu is the GPU that was measured, as
fpac explain --gpu takes it; without it the target's own.
"""

import argparse
import json
import statistics
import subprocess


def read_groups(path):
    """(options of the command, {head: ns}) of each comment."""
    groups = []
    for line in open(path):
        if line.startswith("# fpac bench "):
            groups.append((line.split()[3:], {}))
        elif not line.startswith("#") and groups:
            fields = line.split("\t")
            groups[-1][1][fields[2].split()[0]] = float(fields[6])
    return groups


def predict(build, options, gpu):
    """{head: the fastest candidate} of a spec's heads."""
    out = subprocess.run(
        [f"{build}/fpac", "explain", *options, *(["--gpu", gpu] if gpu else []), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        head["head"]: next(c for c in head["calls"][0]["candidates"] if c.get("fastest"))
        for head in json.loads(out.stdout)
    }


def show(title, errors):
    sizes = [abs(e) for e in errors]
    print(
        f"{title}: {len(errors)} calls, median error {100 * statistics.median(sizes):.1f} %, "
        f"mean {100 * statistics.mean(sizes):.1f} %, predicted over measured {100 * statistics.median(errors):+.1f} %"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lines")
    parser.add_argument("--build", default="build")
    parser.add_argument("--gpu", default="")
    options = parser.parse_args()
    targets = {}
    for command, measured in read_groups(options.lines):
        print("$ fpac bench", *command)
        predicted = predict(options.build, command, options.gpu)
        errors = []
        for head, ns in measured.items():
            candidate = predicted[head]
            error = candidate["ns_per_token_and_head"] / ns - 1
            errors.append(error)
            print(
                f"  {head:16} measured {ns:8.4f} predicted {candidate['ns_per_token_and_head']:8.4f} "
                f"{100 * error:+6.1f} %  {candidate['mechanism']}: {candidate['limit']}"
            )
        show(" ", errors)
        targets.setdefault(command[command.index("--target") + 1], []).extend(errors)
    for target, errors in targets.items():
        show(target, errors)
    show("all", [e for errors in targets.values() for e in errors])


if __name__ == "__main__":
    main()
