#!/usr/bin/env bash
# How long the C compiler takes for each shipped head and how large the object is:
#
#   tools/compile-times.sh FPAC [TARGET]
#
# Prints the slowest and the largest.
set -eu

fpac=$1
target=${2:-c:avx512}
compiler=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $target in
c:avx512) march="-march=x86-64-v4 -mprefer-vector-width=512" ;;
c:avx512bf16) march="-march=x86-64-v4 -mavx512bf16 -mprefer-vector-width=512" ;;
c:avx2) march="-march=x86-64-v3" ;;
c:sse2) march="-march=x86-64" ;;
*) echo "compile-times: $target is no target of this machine" >&2; exit 2 ;;
esac
"$fpac" gen specs/*.lua --target "$target" -o "$work" >/dev/null
slowest=0 largest=0 slow="" large="" heads=0
for source in "$work"/*.c; do
    name=$(basename "$source" .c)
    start=$(date +%s%N)
    # shellcheck disable=SC2086
    "$compiler" -std=gnu11 -O2 $march -fopenmp -fPIC -shared -fvisibility=hidden -o "$work/$name.so" "$source" -lm
    ms=$((($(date +%s%N) - start) / 1000000))
    bytes=$(stat -c %s "$work/$name.so")
    heads=$((heads + 1))
    if [ $ms -gt $slowest ]; then slowest=$ms slow=$name; fi
    if [ "$bytes" -gt $largest ]; then largest=$bytes large=$name; fi
done
printf '\n%s, %d shipped heads, %s: slowest %s %.1f s, largest object %s %.0f KiB\n' \
    "$target" "$heads" "$compiler" "$slow" "$(echo "$slowest" | awk '{print $1 / 1000}')" "$large" \
    "$(echo "$largest" | awk '{print $1 / 1024}')"
