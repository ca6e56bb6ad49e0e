#!/usr/bin/env bash
# Run heads under compute-sanitizer, each in calls of its own process:
#
#   tools/gpu-sanitize.sh BUILD [--tool memcheck|racecheck] [--calls CALL,...] [--heads HEAD,...] [--target TARGET]
#       [--dtype DTYPE] [--jobs N] [--seconds N] [--kernels TEXT] [--out FILE] [SPEC...]
#
# Calls, of two heads each: chunked (900 tokens of two sequences), parallel (300), recurrent (3), these three unless said;
# sequences (cu_seqlens: lengths of 130, 0, 511, 59 and 303, a state given and one wanted of each), pool (the same, states by
# state_index, one of which is none), piece (300 of two, a state given and one wanted), draft (8 tokens, of which 3 and 8 are
# accepted), gradients (500 of two; the forward pass, too), layer (700 of two: a layer's heads beside each other).
#
# Specs: specs/*.lua. Heads: all of them. Target: cuda, what the GPU is; cuda:sm_90 tests portable kernels on an H100 or H200,
# where --dtype bf16 tests warpgroups with heads that are float32 in their spec. A call is made first without the sanitizer, so
# that its verification is not instrumented. --seconds: what each may take under it (600). --kernels: only those whose name has
# that text. A line a call, in FILE too: what the tool found, or that it was refused by the head, or cut by its time. Exit code
# 1 when the tool, or fpac, complains. Random heads in all calls:
#
#   tools/gpu-sanitize.sh build/gpu --tool racecheck --calls chunked,gradients --seconds 120 --out race.txt bench/random.lua
set -euo pipefail

usage() {
    sed -n 's/^# \{0,1\}//; 2,20p' "$0" >&2
    exit 2
}

[ $# -ge 1 ] || usage
fpac=$1/fpac
shift
tool=memcheck target=cuda dtype="" jobs=4 sanitizer=${SANITIZER:-compute-sanitizer}
calls=chunked,parallel,recurrent heads="" seconds=600 kernels="" out=/dev/null
while [ $# -gt 0 ]; do
    case $1 in
    --tool | --calls | --heads | --target | --dtype | --jobs | --seconds | --kernels | --out) [ $# -ge 2 ] || usage ;;
    --*) usage ;;
    *) break ;;
    esac
    case $1 in
    --tool) tool=$2 ;;
    --calls) calls=$2 ;;
    --heads) heads=$2 ;;
    --target) target=$2 ;;
    --dtype) dtype="--dtype $2" ;;
    --jobs) jobs=$2 ;;
    --seconds) seconds=$2 ;;
    --kernels) kernels=$2 ;;
    --out) out=$2 ;;
    esac
    shift 2
done
report="" # racecheck: each pair of accesses, too, that only might meet; by itself it leaves these out
[ "$tool" != racecheck ] || report="--racecheck-report all"
for call in ${calls//,/ }; do
    case $call in
    chunked | parallel | recurrent | sequences | pool | piece | draft | gradients | layer) ;;
    *) usage ;;
    esac
done
[ $# -gt 0 ] || set -- specs/*.lua
if ! command -v "$sanitizer" >/dev/null; then
    echo "gpu-sanitize: there is no $sanitizer (a part of the CUDA toolkit)" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FPA_CACHE_DIR=$work/cache
mkdir -m 700 "$FPA_CACHE_DIR"

# Random arrays of float32, or bytes where the file is called mask: npy.py FILE LOW HIGH EXTENT...; or int32, those
# given: npy.py FILE : NUMBER...
cat >"$work/npy.py" <<'PY'
import array, random, struct, sys
name, low, *rest = sys.argv[1:]
if low == ":":
    kind, descr, shape = "i", "<i4", [len(rest)]
    numbers = array.array(kind, map(int, rest))
else:
    high, shape, count = rest[0], [int(x) for x in rest[1:]], 1
    for extent in shape:
        count *= extent
    random.seed(name.rsplit("/", 1)[-1])
    kind, descr = ("B", "|u1") if name.endswith("mask.npy") else ("f", "<f4")
    number = int if kind == "B" else float
    numbers = array.array(kind, (number(random.uniform(float(low), float(high))) for _ in range(count)))
header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (descr, "".join("%d, " % x for x in shape))
header += " " * (-(len(header) + 11) % 64) + "\n"
with open(name, "wb") as out:
    out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
    numbers.tofile(out)
PY

# shellcheck disable=SC2317 # xargs calls these
# The arguments of fpac run for a head, so many tokens of so many sequences, and their files.
arrays() { # dump folder length batch
    local dump=$1 to=$2 length=$3 batch=$4 low=-1 d dv positions
    field() { awk -v name="$1" '$1 == name { print $2; exit }' "$dump"; }
    lifted() { awk -v name="$1" '$1 == "lift" { for (i = 2; i < NF; i += 2) if ($i == name) print $(i + 1) }' "$dump"; }
    random() { python3 "$work/npy.py" "$to/$1.npy" "${@:2}"; }
    d=$(lifted width) dv=$(field dv) positions=$(lifted positions)
    [ -n "$d" ] || d=$(field d) # without a lift
    [ "$(field normalize)" = none ] || low=0.1 # so that no normaliser vanishes
    random q "$low" 1 "$batch" "$length" 2 "$d"
    random k "$low" 1 "$batch" "$length" 2 "$d"
    random v -1 1 "$batch" "$length" 2 "$dv"
    echo --q "$to/q.npy" --k "$to/k.npy" --v "$to/v.npy"
    if [ "$(field gate)" = 1 ]; then
        random gate -0.1 0 "$batch" "$length" 2
        echo --log-gate "$to/gate.npy"
    fi
    if [ "${positions:-0}" -gt 0 ]; then
        random positions 0 "$length" "$batch" "$length" "$positions"
        echo --positions "$to/positions.npy"
    fi
    if [ "$(lifted key_mask)" = 1 ]; then
        random mask 0 2 "$batch" "$length"
        echo --key-mask "$to/mask.npy"
    fi
    awk '$1 ~ /^trainable/ { print $2, $5 == "per_head" ? 2 : "", $1 == "trainable" ? $3 : "", $4 }' "$dump" |
        while read -r name shape; do
            # shellcheck disable=SC2086
            random "$name" -0.5 0.5 $shape
            echo --weights "$name=$to/$name.npy"
        done
}

# shellcheck disable=SC2317
# A head's arguments for a call, behind fpac; a state that is given is one that the same call without it has left.
arguments() { # spec head call folder
    local spec=$1 head=$2 call=$3 to=$4 form=chunked length=900 batch=2 given="" all
    local bench="bench $spec --head $head --target $target $dtype --heads 2 --batch 2 --repeats 1"
    case $call in
    gradients) echo "$bench --length 500 --backward"; return ;;
    layer) echo "${bench/ --heads 2/} --length 700"; return ;;
    parallel) form=parallel length=300 ;;
    recurrent) form=recurrent length=3 ;;
    piece) length=300 ;;
    draft) length=8 ;;
    sequences | pool)
        length=1003 batch=1
        python3 "$work/npy.py" "$to/cu_seqlens.npy" : 0 130 130 641 700 1003
        given="--cu-seqlens $to/cu_seqlens.npy"
        ;;
    esac
    # shellcheck disable=SC2086
    "$fpac" explain "$spec" --head "$head" $dtype --dump=head >"$to/dump"
    all="run $spec --head $head $(arrays "$to/dump" "$to" "$length" "$batch" | tr '\n' ' ') --target $target $dtype -o $to/o.npy $given"
    [ "$call" = draft ] || all="$all --form $form"
    case $call in
    sequences | pool | piece | draft)
        # shellcheck disable=SC2086
        "$fpac" ${all/ --form $form/} --state-out "$to/given.npy" >"$to/log" 2>&1 || return 1
        all="$all --state-in $to/given.npy --state-out $to/state.npy"
        ;;
    esac
    case $call in
    pool) python3 "$work/npy.py" "$to/index.npy" : 3 1 -1 0 4 && all="$all --state-index $to/index.npy" ;;
    draft) python3 "$work/npy.py" "$to/count.npy" : 3 8 && all="$all --draft $to/count.npy" ;;
    esac
    echo "$all"
}

# shellcheck disable=SC2317
# What the tool says of a call, and 1 when it complains.
look() { # folder argument...
    local to=$1 verdict status=0 complaints
    shift
    # shellcheck disable=SC2086
    FPA_LIBCUBLAS=none timeout -k 5 "$seconds" "$sanitizer" --tool "$tool" $report --error-exitcode 9 \
        ${kernels:+--kernel-name kernel_substring=$kernels} "$fpac" "$@" >"$to/log" 2>&1 || status=$?
    verdict=$(sed -n 's/^=* *\(ERROR\|RACECHECK\) SUMMARY: //p' "$to/log" | tail -n 1)
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        complaints=$(grep -ciE 'race reported|hazard|invalid|exception' "$to/log" || true)
        verdict="cut at $seconds s, $complaints lines of complaints till then" status=$((complaints > 0))
    elif [ -z "$verdict" ]; then
        verdict=$(tail -n 1 "$to/log") status=1
    fi
    echo "$verdict"
    return "$status"
}

# shellcheck disable=SC2317
check_call() { # spec head call
    local to verdict status=0 given made=1
    to=$(mktemp -d "$work/call.XXXXXX")
    # shellcheck disable=SC2086
    if given=$(arguments "$1" "$2" "$3" "$to") && { FPA_LIBCUBLAS=none "$fpac" $given 2>"$to/log" >/dev/null || { made=$? && false; }; }; then
        verdict=$(look "$to" $given) || status=1
        case $verdict in 0\ * | *", 0 lines"*) ;; *) grep -vE '^=* *$|Host Frame|Saved host' "$to/log" | head -n 40 >"$work/complaint.$2.$3" ;; esac
    else
        verdict="refused: $(tail -n 1 "$to/log")"
        # not what a head may say of a call: kernels that compute something else, and crashes
        [ "$made" -eq 1 ] || verdict="exit code $made: $(tail -n 1 "$to/log")" status=1
        case $3 in chunked | parallel | recurrent) status=1 ;; esac
    fi
    rm -rf "$to"
    printf '%-28s%-11s%s\n' "$2" "$3:" "$verdict"
    return "$status"
}

# shellcheck disable=SC2317
# Whether there is such a call of a head or a layer: nothing is recurrent without a mask.
has_call() { # spec head call is_layer
    case $3 in
    layer) [ "$4" = 1 ] ;;
    recurrent | draft) [ "$4" = 0 ] && ! "$fpac" explain "$1" --head "$2" --dump=head | grep -q '^causal 0' ;;
    *) [ "$4" = 0 ] ;;
    esac
}

export fpac target dtype tool report sanitizer work seconds kernels
export -f check_call arguments arrays look
status=0
for spec in "$@"; do
    "$fpac" list "$spec" | sed 's/^layer \([^:]*\):.*/\1 layer/' | while read -r head is _; do
        [ -z "$heads" ] || case ,$heads, in *,"$head",*) ;; *) continue ;; esac
        for call in ${calls//,/ }; do
            if has_call "$spec" "$head" "$call" "$([ "$is" = layer ] && echo 1 || echo 0)"; then
                echo "$spec $head $call"
            fi
        done
    done
done >"$work/calls"
xargs -P "$jobs" -L 1 bash -c 'check_call "$@"' check <"$work/calls" | tee "$out" || status=1
for complaint in "$work"/complaint.*; do
    [ -e "$complaint" ] || continue
    echo "---- ${complaint##*/complaint.}"
    cat "$complaint"
done | tee -a "$out"
exit "$status"
