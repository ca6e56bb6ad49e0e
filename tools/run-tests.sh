#!/usr/bin/env bash
# Run test programs and sum up: tools/run-tests.sh BUILD PROGRAM...
#
# Each program writes CMocka's report to PROGRAM.log; the log of one that fails is shown. The
# last line is `N passed, N failed, N skipped`; status 1 when anything failed. The kernels that
# tests compile go to a cache below BUILD, never to the user's.
#
# A program may take TEST_SECONDS: ten times what the longest takes on two cores of their own, or more.
# Beside its seconds stand those of the cores, which a busy machine changes little.
#
# TEST_RESUME=yes goes on after an interruption: a program that passed since it was linked, with the same FPA_TEST_ALL, is
# not run again. What else has changed since, specs or documents, is not looked at.
set -eu

build=$1
shift
mkdir -p "$build/tests/cache"
chmod 700 "$build/tests/cache"
FPA_CACHE_DIR=$(realpath "$build/tests/cache")
export FPA_CACHE_DIR
# What they compile of emitted kernels that run on the CPU: by its text, those of the last days alone.
FPA_TEST_COMPILED=$(dirname "$FPA_CACHE_DIR")/compiled
export FPA_TEST_COMPILED
# Kernels in C are compiled once for all of them. The modules in the cache are known by the compiler's time, too.
mkdir -p "$build/tests/bin"
PATH=$(realpath "$build/tests/bin"):$PATH
# Test programs share the cores: threads that wait should sleep, not spin.
export OMP_WAIT_POLICY=passive
export CMOCKA_MESSAGE_OUTPUT=STDOUT
workers=${TEST_JOBS:-$(nproc)}
part=${FPA_TEST_ALL:-0}
case $part in
0) limit=${TEST_SECONDS:-900} ;;
*) limit=${TEST_SECONDS:-14400} ;;
esac
TIMEFORMAT='%U %S'

# "[  PASSED  ] 12 test(s)." -> 12; 0 when there is no such line
count() { sed -n "s/^\[  $1  *\] \([0-9][0-9]*\) test(s).*/\1/p" "$2" | awk '{n += $1} END {print n + 0}'; }

# Of a sum the second number is of tests that failed, the fourth says which part of the tests it is of.
passed_before() {
    [ "${TEST_RESUME:-no}" = yes ] && [ "$1.sum" -nt "$1" ] && [ -f "$1.report" ] &&
        awk -v part="$part" '{exit !($2 == 0 && $4 == part)}' "$1.sum"
}

run_one() {
    local program=$1 log=$1.log start end status=0
    if passed_before "$program"; then
        echo "$(tail -n 1 "$program.report"), before"
        return
    fi
    rm -f "$program.sum"
    start=$(date +%s%N)
    { time timeout "$limit" "$program" >"$log" 2>&1 || status=$?; } 2>"$program.cpu"
    end=$(date +%s%N)
    local passed failed skipped
    passed=$(count PASSED "$log")
    failed=$(count FAILED "$log")
    skipped=$(count SKIPPED "$log")
    # A program that crashes has no summary: that is one failure, whatever it printed before.
    if [ $status -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
    echo "$passed $failed $skipped $part" >"$program.sum"
    {
        if [ "$failed" -ne 0 ]; then cat "$log"; fi
        awk -v ns=$((end - start)) -v cpu="$(awk '{print $1 + $2}' "$program.cpu")" -v name="$(basename "$program")" -v status=$status -v p="$passed" \
            -v f="$failed" -v s="$skipped" 'BEGIN {
            printf "%-5s %-26s %4d passed %3d failed %3d skipped %7.1f s, %6.1f of cores%s\n", f ? "FAIL" : "ok",
                name, p, f, s, ns / 1e9, cpu, status && status != f ? " (exit code " status ")" : "" }'
    } >"$program.report"
    cat "$program.report"
}

if [ "${1:-}" = --one ]; then
    run_one "$2"
    exit 0
fi
# Before the first program: beside others files come and go.
if [ -d "$FPA_TEST_COMPILED" ]; then find "$FPA_TEST_COMPILED" -type f -mtime +3 -delete; fi
for compiler in cc gcc; do
    once=$build/tests/bin/$compiler
    command -v "$compiler" >/dev/null || continue
    cmp -s tests/cc_once.sh "$once" || install -D -m 755 tests/cc_once.sh "$once"
done
if [ "${TEST_RESUME:-no}" != yes ]; then rm -f "${@/%/.sum}"; fi
printf '%s\0' "$@" | xargs -0 -n 1 -P "$workers" "$0" "$build" --one

for program in "$@"; do cat "$program.sum"; done | awk '{p += $1; f += $2; s += $3}
    END {printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0}'
