#!/usr/bin/env bash
# What tests have run: tools/coverage.sh BUILD
#
# BUILD was compiled with COVERAGE=1 and its tests have run. A line a file of gen, runtime and command, those
# with the smallest share first in each folder, and a line a folder: the share of lines, lines run, lines.
set -eu

build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t counts < <(find "$PWD/$build"/obj/{base,head,machine,gen,runtime,command} -name '*.gcda')
if [ ${#counts[@]} -eq 0 ]; then
    echo "coverage: $build has no counts; run make coverage" >&2
    exit 1
fi
(cd "$work" && printf '%s\0' "${counts[@]}" | xargs -0 gcov -n -s "$OLDPWD" 2>/dev/null) |
    awk -F"'" '/^File / {file = $2} /^Lines executed:/ && file {print file, $0; file = ""}' |
    sed -n 's|^\(.*\) Lines executed:\([0-9.]*\)% of \([0-9]*\)$|\1 \2 \3|p' |
    awk -v here="$PWD/" '{sub(here, "", $1)} $1 ~ /^(gen|runtime|command)\/.*\.c$/ && !seen[$1]++ {
        folder = $1; sub(/\/[^\/]*$/, "", folder)
        ran = $2 * $3 / 100
        run[folder] += ran; all[folder] += $3
        printf "%s 1 %6.1f %% %6d of %6d  %s\n", folder, $2, ran + 0.5, $3, $1}
        END {for (f in all) printf "%s 0 %6.1f %% %6d of %6d  %s/\n", f, 100 * run[f] / all[f], run[f], all[f], f}' |
    sort -k1,1 -k2,2n -k3,3n | cut -d' ' -f3-
