#!/usr/bin/env bash
# Run test programs and sum up: tools/run-tests.sh BUILD PROGRAM[:I/N]...
#
# Each program writes CMocka's report to PROGRAM.log; the log of one that fails is shown. The
# last line is `N passed, N failed, N skipped`; status 1 when anything failed. The kernels that
# tests compile go to a cache below BUILD, never to the user's.
#
# A program may take TEST_SECONDS: ten times what the longest takes on two cores of their own, or more.
# Beside its seconds stand those of the cores, which a busy machine changes little.
#
# PROGRAM:I/N is one share of N of what the program tries one after the other (tests/share.h), in PROGRAM.IofN.log. Where all shares
# of a program are there, they must have all of it between them. tools/run-tests.sh --shares LOG... asks that of logs from several machines.
#
# TEST_RESUME=yes goes on after an interruption: a program that passed since it was linked, with the same FPA_TEST_ALL, is
# not run again. What else has changed since, specs or documents, is not looked at.
set -eu

# "share 2 of 8: 41 of 327 faults, numbers that sum up to 6683": that each share is there once, and that the numbers are 1 to all of them.
sum_shares() {
    awk '
        /^share [0-9]+ of [0-9]+: / {
            name = FILENAME
            sub(/.*\//, "", name)
            sub(/\.[0-9]+of[0-9]+\.log$/, "", name)
            sub(/:$/, "", $4)
            what = name " " $8
            sub(/,$/, "", what)
            twice = twice || (what, $2) in seen
            seen[what, $2]
            shares[what] = $4; all[what] = $7; there[what]++; count[what] += $5; sum[what] += $NF
        }
        END {
            for (what in all) {
                whole = !twice && there[what] == shares[what] && count[what] == all[what] && sum[what] == all[what] * (all[what] + 1) / 2
                printf "%-5s %s: %d of %d in %d of %d shares\n", whole ? "ok" : "LACKS", what, count[what], all[what], there[what], shares[what]
                lacks += !whole
            }
            exit lacks > 0
        }' "$@"
}
if [ "$1" = --shares ]; then
    shift
    sum_shares "$@"
    exit
fi

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
# One more than there are cores: programs wait for others that they start, and sleep.
workers=${TEST_JOBS:-$(($(nproc) + 1))}
part=${FPA_TEST_ALL:-0}
case $part in
0) limit=${TEST_SECONDS:-900} ;;
*) limit=${TEST_SECONDS:-14400} ;;
esac
TIMEFORMAT='%U %S'

# "[  PASSED  ] 12 test(s)." -> 12; 0 when there is no such line
count() { sed -n "s/^\[  $1  *\] \([0-9][0-9]*\) test(s).*/\1/p" "$2" | awk '{n += $1} END {print n + 0}'; }

# build/tests/test_faults:2/8 -> build/tests/test_faults.2of8, before what its files end with
files_of() {
    case $1 in
    *:*/*) local share=${1##*:} && echo "${1%:*}.${share%/*}of${share#*/}" ;;
    *) echo "$1" ;;
    esac
}

# Of a sum the second number is of tests that failed, the fourth says which part of the tests it is of.
passed_before() {
    [ "${TEST_RESUME:-no}" = yes ] && [ "$2.sum" -nt "$1" ] && [ -f "$2.report" ] &&
        awk -v part="$part" '{exit !($2 == 0 && $4 == part)}' "$2.sum"
}

run_one() {
    local program=${1%%:*} files log start end status=0
    files=$(files_of "$1")
    log=$files.log
    if passed_before "$program" "$files"; then
        echo "$(tail -n 1 "$files.report"), before"
        return
    fi
    rm -f "$files.sum"
    if [ "$program" != "$1" ]; then export FPA_TEST_SHARE=${1##*:}; fi
    if [ "$part" != 0 ]; then echo "      $(basename "$files") begins at $(date +%H:%M:%S)"; fi
    start=$(date +%s%N)
    { time timeout "$limit" "$program" >"$log" 2>&1 || status=$?; } 2>"$files.cpu"
    end=$(date +%s%N)
    local passed failed skipped
    passed=$(count PASSED "$log")
    failed=$(count FAILED "$log")
    skipped=$(count SKIPPED "$log")
    # A program that crashes has no summary: that is one failure, whatever it printed before.
    if [ $status -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
    echo "$passed $failed $skipped $part" >"$files.sum"
    {
        if [ "$failed" -ne 0 ]; then cat "$log"; fi
        awk -v ns=$((end - start)) -v cpu="$(awk '{print $1 + $2}' "$files.cpu")" -v name="$(basename "$files")" -v status=$status -v p="$passed" \
            -v f="$failed" -v s="$skipped" 'BEGIN {
            printf "%-5s %-26s %4d passed %3d failed %3d skipped %7.1f s, %6.1f of cores%s\n", f ? "FAIL" : "ok",
                name, p, f, s, ns / 1e9, cpu, status && status != f ? " (exit code " status ")" : "" }'
    } >"$files.report"
    cat "$files.report"
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
sums=()
declare -A shares=()
for program in "$@"; do
    files=$(files_of "$program")
    sums+=("$files.sum")
    if [ "$files" != "$program" ]; then shares[${program%:*}.${program##*/}]+=" $files.log"; fi
done
if [ "${TEST_RESUME:-no}" != yes ]; then rm -f "${sums[@]}"; fi
printf '%s\0' "$@" | xargs -0 -n 1 -P "$workers" "$0" "$build" --one

# Shares that lack something are one failure more.
lacks=0
for logs in "${shares[@]}"; do
    read -r -a logs <<<"$logs"
    all=${logs[0]##*of}
    if [ ${#logs[@]} -eq "${all%.log}" ]; then sum_shares "${logs[@]}" || lacks=$((lacks + 1)); fi
done
cat "${sums[@]}" | awk -v lacks=$lacks '{p += $1; f += $2; s += $3}
    END {f += lacks; printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0}'
