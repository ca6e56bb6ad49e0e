#!/usr/bin/env python3
"""The model of CPUs against measurements: python3 bench/predict.py [--build build] LINES.tsv

LINES.tsv has lines of `fpac bench --tsv`, each after a comment with the command that measured it:
    # fpac bench specs/linear.lua --head linear_d64 --form chunked --length 4096 --heads 2 --threads 1
The program BUILD/predict_c tells what the model predicts for the same call; the table has both, what limits the
prediction, and the error: predicted over measured, less one. Several lines of one command count as the least of them:
other programs only ever make a forward slower.

    --measure LINES.tsv   measure first: every call of the table below, --rounds times one after the other
    --prefix "chrt -r 1"  before each command, so that other programs do not disturb it
    --only TEXT           only commands that have TEXT in them
"""
import argparse
import os
import statistics
import subprocess
import sys

SPECS = ["appendix", "gated", "inhomogeneous", "linear", "mixed", "power", "spow", "storage", "table1", "taylor",
         "trainable", "tspow"]
FORMS = ["linear_d64", "tspow2_d64_b8", "tspow3_d16", "dense_16x32_d64", "taylor2_d16", "gated_linear_d32",
         "tspow2_d64_bf16", "mixed_sum_d16", "linear_d24_v48", "spow3_d16"]  # parallel and recurrent as well
TWO = ["linear_d64", "tspow2_d64_b8", "tspow3_d16", "tspow2_d64_bf16", "dense_16x32_d64"]  # on two threads as well
SHAPES = ["p2_16_16", "p2_32_32", "p2_64_128", "p2_96_96", "p3_16_64", "t2_16_32", "t2_32_64", "t3_8_64", "l_16_64",
          "lg_64_32", "ln_80_80", "l_128_64", "lgn_128_128", "l_256_64", "d_16_16", "d_32_32", "d_8_8_8",
          "d_16_32_128", "tn_16_24"]


def heads_of(build, spec):
    out = subprocess.run([f"{build}/fpac", "list", spec], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in out.splitlines()]


def calls(build):
    """Commands without their program: of every shipped head and some of bench/shapes.lua."""
    for spec in [f"specs/{name}.lua" for name in SPECS]:
        for head in heads_of(build, spec):
            base = f"bench {spec} --head {head}"
            yield f"{base} --form chunked --length 4096 --threads 1"
            if head in FORMS:
                yield f"{base} --form chunked --length 1024 --heads 4 --threads 1"
                yield f"{base} --form parallel --length 1024 --threads 1"
                yield f"{base} --form recurrent --length 256 --threads 1"
            if head in TWO:
                yield f"{base} --form chunked --length 4096 --threads 2"
                yield f"{base} --form parallel --length 1024 --heads 2 --threads 2"
    for head in SHAPES:
        yield f"bench bench/shapes.lua --head {head} --form chunked --length 2048 --threads 1"
    for head in ["linear_d64", "dense_16x32_d64"]:
        spec = "specs/linear.lua" if head.startswith("linear") else "specs/mixed.lua"
        for target in ["c:avx2", "c:sse2"]:
            yield f"bench {spec} --head {head} --form chunked --length 4096 --threads 1 --target {target}"


def measure(build, path, rounds, only, prefix):
    todo = [call for call in calls(build) if only in call]
    cores = sorted(os.sched_getaffinity(0))
    for round_ in range(rounds):
        for i, call in enumerate(todo):
            print(f"\rround {round_ + 1} of {rounds}: {i + 1} of {len(todo)}   ", end="", file=sys.stderr)
            with open(path, "a", encoding="utf-8") as lines:
                lines.write(f"# fpac {call}\n")
            threads = int(call.split("--threads ")[1].split()[0])
            place = ",".join(str(core) for core in cores[-threads:])
            subprocess.run([*prefix.split(), "taskset", "-c", place, f"{build}/fpac", *call.split(), "--repeats", "15", "--tsv", path],
                           check=True, stdout=subprocess.DEVNULL)
    print(file=sys.stderr)


def read(path):
    """{command: least ns a token and head}"""
    least, command = {}, None
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if line.startswith("# fpac bench "):
                command = line[len("# fpac "):].strip()
            elif not line.startswith("#") and len(fields) >= 8 and command:
                least[command] = min(float(fields[6]), least.get(command, float("inf")))
    return least


def predict(build, command):
    words = command.split()
    spec, option = words[1], dict(zip(words[2::2], words[3::2]))
    wanted = [f"{build}/predict_c", spec, option["--head"], option.get("--target", "c"), option["--form"],
              option.get("--length", "4096"), option.get("--batch", "1"), option.get("--heads", "1"),
              option.get("--threads", "1")]
    out = subprocess.run(wanted, capture_output=True, text=True, check=False)
    if out.returncode:
        sys.exit(f"{' '.join(wanted)}: {out.stderr.strip()}")
    ns, limit = out.stdout.splitlines()[0].split("\t")
    return float(ns), limit, option


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines")
    parser.add_argument("--build", default="build")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--prefix", default="")
    options = parser.parse_args()
    if options.measure:
        measure(options.build, options.lines, options.rounds, options.only, options.prefix)
    errors = []
    print(f"{'head':24} {'form':10} {'target':12} {'tokens':>6} {'B x H':>6} {'threads':>7} {'predicted':>10} "
          f"{'measured':>10} {'error':>7}  limit")
    for command, measured in read(options.lines).items():
        if options.only not in command:
            continue
        predicted, limit, option = predict(options.build, command)
        error = predicted / measured - 1
        errors.append(abs(error))
        size = f"{option.get('--batch', '1')}x{option.get('--heads', '1')}"
        print(f"{option['--head']:24} {option['--form']:10} {option.get('--target', 'c'):12} "
              f"{option.get('--length', '4096'):>6} {size:>6} {option.get('--threads', '1'):>7} {predicted:10.1f} "
              f"{measured:10.1f} {100 * error:+6.1f}%  {limit}")
    if errors:
        print(f"{len(errors)} calls: median error {100 * statistics.median(errors):.1f} %, "
              f"largest {100 * max(errors):.1f} %; ns a token and head")


if __name__ == "__main__":
    main()
