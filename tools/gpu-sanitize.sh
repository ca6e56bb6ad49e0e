#!/usr/bin/env bash
# Run every head of some specs, in every form, under compute-sanitizer:
#
#   tools/gpu-sanitize.sh BUILD [--tool memcheck|racecheck] [--target TARGET] [--dtype DTYPE]
#       [--jobs N] [SPEC...]
#
# Specs: specs/*.lua. Target: cuda, what the GPU is; cuda:sm_90 tests portable kernels on an H100 or H200, where
# --dtype bf16 tests warpgroups with heads that are float32 in their spec. A head is opened first without the
# sanitizer, so that its verification is not instrumented, then applied to 900 tokens (chunked), 300 (parallel)
# and 3 (recurrent) of two sequences. A line a head; exit code 1 when the tool, or fpac, complains.
set -eu

usage() {
    sed -n 's/^# \{0,1\}//; 2,9p' "$0" >&2
    exit 2
}

[ $# -ge 1 ] || usage
fpac=$1/fpac
shift
tool=memcheck target=cuda dtype="" jobs=4 sanitizer=${SANITIZER:-compute-sanitizer}
while [ $# -gt 0 ]; do
    case $1 in
    --tool) [ $# -ge 2 ] || usage; tool=$2; shift ;;
    --target) [ $# -ge 2 ] || usage; target=$2; shift ;;
    --dtype) [ $# -ge 2 ] || usage; dtype="--dtype $2"; shift ;;
    --jobs) [ $# -ge 2 ] || usage; jobs=$2; shift ;;
    --*) usage ;;
    *) break ;;
    esac
    shift
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

# Random arrays of float32, or bytes where the file is called mask: npy.py FILE LOW HIGH EXTENT...
cat >"$work/npy.py" <<'PY'
import array, random, struct, sys
name, low, high, *shape = sys.argv[1:]
shape, count = [int(x) for x in shape], 1
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
# The arguments of fpac run for a head and a length, and their files.
arrays() { # dump folder length
    local dump=$1 to=$2 length=$3 low=-1 d dv positions
    field() { awk -v name="$1" '$1 == name { print $2; exit }' "$dump"; }
    lifted() { awk -v name="$1" '$1 == "lift" { for (i = 2; i < NF; i += 2) if ($i == name) print $(i + 1) }' "$dump"; }
    d=$(lifted width) dv=$(field dv) positions=$(lifted positions)
    [ -n "$d" ] || d=$(field d) # without a lift
    [ "$(field normalize)" = none ] || low=0.1 # so that no normaliser vanishes
    python3 "$work/npy.py" "$to/q.npy" $low 1 2 "$length" 2 "$d"
    python3 "$work/npy.py" "$to/k.npy" $low 1 2 "$length" 2 "$d"
    python3 "$work/npy.py" "$to/v.npy" -1 1 2 "$length" 2 "$dv"
    echo --q "$to/q.npy" --k "$to/k.npy" --v "$to/v.npy"
    if [ "$(field gate)" = 1 ]; then
        python3 "$work/npy.py" "$to/gate.npy" -0.1 0 2 "$length" 2
        echo --log-gate "$to/gate.npy"
    fi
    if [ "${positions:-0}" -gt 0 ]; then
        python3 "$work/npy.py" "$to/positions.npy" 0 "$length" 2 "$length" "$positions"
        echo --positions "$to/positions.npy"
    fi
    if [ "$(lifted key_mask)" = 1 ]; then
        python3 "$work/npy.py" "$to/mask.npy" 0 2 2 "$length"
        echo --key-mask "$to/mask.npy"
    fi
    awk '$1 ~ /^trainable/ { print $2, $5 == "per_head" ? 2 : "", $1 == "trainable" ? $3 : "", $4 }' "$dump" |
        while read -r name shape; do
            # shellcheck disable=SC2086
            python3 "$work/npy.py" "$to/$name.npy" -0.5 0.5 $shape
            echo --weights "$name=$to/$name.npy"
        done
}

check_head() { # spec head
    local spec=$1 head=$2 to form length verdict said="" status=0
    to=$(mktemp -d "$work/head.XXXXXX")
    # shellcheck disable=SC2086 # $dtype: an option with its value, or nothing
    "$fpac" explain "$spec" --head "$head" $dtype --dump=head >"$to/dump"
    for form in chunked:900 parallel:300 recurrent:3; do
        length=${form#*:} form=${form%:*}
        if [ $form = recurrent ] && grep -q '^causal 0' "$to/dump"; then continue; fi
        # shellcheck disable=SC2046,SC2086
        set -- $(arrays "$to/dump" "$to" "$length") --form $form --target "$target" $dtype -o "$to/o.npy"
        if ! "$fpac" run "$spec" --head "$head" "$@" >"$to/log" 2>&1; then
            said="$said $form: $(tail -n 1 "$to/log")" status=1
            continue
        fi
        "$sanitizer" --tool "$tool" --error-exitcode 9 "$fpac" run "$spec" --head "$head" "$@" >"$to/log" 2>&1 || status=1
        verdict=$(sed -n 's/^=* *\(ERROR\|RACECHECK\) SUMMARY: //p' "$to/log" | tail -n 1)
        [ -n "$verdict" ] || { verdict=$(tail -n 1 "$to/log"); status=1; }
        said="$said $form: $verdict;"
        case $verdict in 0\ *) ;; *) cp "$to/log" "$work/complaint.$head.$form" ;; esac
    done
    rm -rf "$to"
    printf '%-28s%s\n' "$head" "$said"
    return $status
}

export fpac target dtype tool sanitizer work
export -f check_head arrays
status=0
for spec in "$@"; do
    "$fpac" list "$spec" | awk -v spec="$spec" '{ print spec, $1 }'
done | xargs -P "$jobs" -L 1 bash -c 'check_head "$@"' check || status=1
for complaint in "$work"/complaint.*; do
    [ -e "$complaint" ] || continue
    echo "---- ${complaint##*/complaint.}"
    grep -v '^ *$' "$complaint" | head -n 40
done
exit $status
