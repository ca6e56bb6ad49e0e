#!/usr/bin/env python3
"""The table of docs/performance.md from the lines of results' part `models`: python3 bench/models_table.py LINES.tsv

A row a head and length: what fpac takes, beside every case of a package whose name begins with the head's. ns per
token and head. What could not be measured is told below the table.
"""

import argparse


def read(path):
    """(head, length) -> fpac's ns; the same -> [(package and its case, ns)]; what was skipped."""
    ours, theirs, skipped = {}, {}, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if fields[0] == "skipped":
                skipped.append(fields[1:4])
            elif len(fields) >= 8 and not line.startswith("#"):
                head, _, case = fields[2].partition(" ")
                at, ns = (head, int(fields[3])), float(fields[6])
                if fields[0] == "fpac":
                    ours[at] = ns
                else:
                    theirs.setdefault(at, []).append((f"{fields[0]} {fields[1]}, {case}", ns))
    return ours, theirs, skipped


def rows(ours, theirs):
    for (head, length), ns in ours.items():
        others = theirs.get((head, length))
        if not others:
            yield f"| {head} | {length:,} | {ns:.2f} | | | |"
        for name, other in others or ():
            yield f"| {head} | {length:,} | {ns:.2f} | {name} | {other:.2f} | {other / ns:.1f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("lines", help="models.tsv")
    ours, theirs, skipped = read(parser.parse_args().lines)
    print("| head | L | fpac | package | its ns | ratio |")
    print("|---|---|---|---|---|---|")
    print(*rows(ours, theirs), sep="\n")
    if skipped:
        print()
    for package, case, why in skipped:
        print(f"skipped: {package}: {case}: {why}")


if __name__ == "__main__":
    main()
