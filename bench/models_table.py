#!/usr/bin/env python3
"""The table of docs/performance.md from the lines of results' part `models`: python3 bench/models_table.py LINES.tsv

A row a head and length: what fpac takes, beside every case of a package whose name begins with the head's. ns per
token and head. What could not be measured is told below the table. --into docs/performance.md puts it there, between its
two lines <!-- models: ... -->, with the date, commit and device of the lines, which tools/results.sh wrote at their top.
"""

import argparse
import re
import sys

BEGIN, END = "<!-- models: begin -->", "<!-- models: end -->"


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


def where_from(path):
    """Date, commit and device: the first two comments of what tools/results.sh keeps."""
    with open(path, encoding="utf-8") as lines:
        first, second = next(lines, ""), next(lines, "")
    found = re.match(r"# results.sh .*: (\d{4}-\d\d-\d\d) .*, commit ([^,]*)", first)
    if not found or not second.startswith("# "):
        sys.exit(f"{path}: is not what tools/results.sh keeps: its first lines name no date, commit and device")
    return f"{second[2:].strip()}, {found[1]}, commit {found[2]} (`models.txt`)"


def table_of(ours, theirs, skipped):
    yield "| head | L | fpac | package | its ns | ratio |"
    yield "|---|---|---|---|---|---|"
    yield from rows(ours, theirs)
    if skipped:
        yield ""
    for package, case, why in skipped:
        yield f"skipped: {package}: {case}: {why}"


def put_into(page, lines):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        sys.exit(f"{page}: has no lines {BEGIN} and {END}")
    with open(page, "w", encoding="utf-8") as file:
        file.write("\n".join([text[:begin] + BEGIN, *lines, text[end:]]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("lines", help="models.tsv")
    parser.add_argument("--into", metavar="PAGE", help="the page that gets the table")
    arguments = parser.parse_args()
    ours, theirs, skipped = read(arguments.lines)
    if not arguments.into:
        print(*table_of(ours, theirs, skipped), sep="\n")
        return
    told = [f"- {case} ({package}): {why}" for package, case, why in skipped]
    told = ["", "Not measured:", "", *told] if told else []
    put_into(arguments.into, [where_from(arguments.lines) + ":", "", *table_of(ours, theirs, []), *told])


if __name__ == "__main__":
    main()
