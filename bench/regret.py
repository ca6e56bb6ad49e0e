#!/usr/bin/env python3
"""What the model chooses beside all that could have been chosen: python3 bench/regret.py CANDIDATES.tsv

CANDIDATES.tsv is what `fpac bench --candidates --tsv` writes. A line a call: how many candidates suit, the chosen one,
its predicted and measured microseconds, the least of all, and the regret: the chosen one's time over the least of its
own kernels' candidates, and of all mechanisms', less one. Then the means.
"""

import argparse
import statistics

CALL = ["head", "form", "length", "batch", "heads", "target"]


def read(path):
    """{a call: its candidates}; a row is a dictionary of the file's own fields."""
    calls, fields = {}, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            values = line.rstrip("\n").split("\t")
            if line.startswith("# head"):
                fields = [values[0][2:], *values[1:]]
            elif not line.startswith("#"):
                row = dict(zip(fields, values))
                calls.setdefault(tuple(row[name] for name in CALL), []).append(row)
    return calls


def seconds(row):
    return float(row["measured_seconds"])


def name_of(row):
    return f"{row['plan']}: {row['mechanism']} {row['candidate']}".rstrip(" ,")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("lines")
    own, every, errors, count, heads = [], [], [], 0, set()
    print(
        f"{'head':16} {'form':8} {'length':>6} {'B':>3} {'H':>3} {'cand.':>5} {'predicted':>9} {'measured':>9} "
        f"{'least':>9} "
        f"{'regret':>7} {'of all':>7}  chosen; the least where it is another"
    )
    for call, rows in read(parser.parse_args().lines).items():
        chosen = next((row for row in rows if row["chosen"] == "1"), None)
        if not chosen:
            continue
        least = min(rows, key=seconds)
        own.append(seconds(chosen) / min(seconds(row) for row in rows if row["plan"] == chosen["plan"]) - 1)
        every.append(seconds(chosen) / seconds(least) - 1)
        errors.append(abs(float(chosen["predicted_seconds"]) / seconds(chosen) - 1))
        count += len(rows)
        heads.add(call[0])
        print(
            f"{call[0]:16} {call[1]:8} {call[2]:>6} {call[3]:>3} {call[4]:>3} {len(rows):5} "
            f"{1e6 * float(chosen['predicted_seconds']):9.1f} {1e6 * seconds(chosen):9.1f} {1e6 * seconds(least):9.1f} "
            f"{100 * own[-1]:6.1f}% {100 * every[-1]:6.1f}%  {name_of(chosen)}"
            f"{'; ' + name_of(least) if least is not chosen else ''}"
        )
    if own:
        print(
            f"{len(own)} calls of {len(heads)} heads, {count} candidates timed: "
            f"regret {100 * statistics.mean(own):.2f} % on average "
            f"among the chosen kernels' own candidates, at most {100 * max(own):.1f} %; "
            f"{100 * statistics.mean(every):.2f} % and {100 * max(every):.1f} % among all."
        )
        print(f"Predicted over measured of what is chosen: median error {100 * statistics.median(errors):.1f} %.")


if __name__ == "__main__":
    main()
