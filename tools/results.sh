#!/usr/bin/env bash
# Measure everything that the pages quote, into one folder (make results OUT=DIR):
#
#   tools/results.sh BUILD OUT [--only PART[,PART...]] [--commit NAME] [--old BUILD] [--target TARGET]
#
#   cpu        C kernels beside OpenBLAS, NumPy and torch: cpu.txt, cpu.tsv, cpu-time.svg
#   table      CUDA kernels beside their peers: table.txt, gpu.tsv, time.svg, share.svg, decode.svg; of the same
#              lines the README's picture, speed.tsv and speed.svg
#   open       first opens, and opens from the cache: open.txt
#   shapes     the heads of bench/shapes.lua: shapes.txt, shapes.tsv
#   family     maps, positions, sketches, random features, windows: family.txt, family.tsv
#   backward   gradients beside the forward pass: backward.txt
#   random     the heads of bench/random.lua, each with its share of the bound: random.txt, random.tsv
#   sequences  sequences of different lengths in one call, prompts in pieces: sequences.txt
#   drafts     several tokens a step and what is accepted of them, against a step: drafts.txt
#   serve      tokens a second against slots, of a server with a queue of requests: serve.txt, serve.svg
#   design     what fpac design predicts of 20 heads, beside what it measures: design.txt
#   models     the heads of specs/models beside the packages that their models use: models.txt, models.tsv
#   python     what a call from Python takes beyond the C call: python.txt
#   model      what the model of GPUs predicts beside what is measured, and each candidate of some heads, forced:
#              predict-gpu.txt, predict-gpu.tsv, candidates.txt, candidates.tsv
#   portable   the portable CUDA kernels, where the GPU has kernels of its own: portable.txt, portable.tsv
#   suite      the tests that need a GPU, also with portable kernels: suite.txt
#   sanitizer  compute-sanitizer's memcheck and racecheck: sanitizer.txt
#   compare    this build and an older one (--old), interleaved: compare.txt, compare.tsv
#
# Without --only every part that can run here; the others are told with what they lack. What a part wrote replaces
# what the folder had; each text and table says at its top when, of which commit and on which device. parts.tsv has
# a line a part, what became of it; environment-cpu.txt and environment-gpu.txt the machine of the last run with
# such a part. While a part runs what it has measured lies in OUT/unfinished; of one that is cut off it stays, and the next
# run puts it aside as OUT/cut-off-DATE. --commit names the commit where there is no git. Target: cuda, what the GPU is.
# Nothing is built: BUILD is where make, or tools/gpu-pack.sh, put its programs; packages of BUILD/wheels
# (tools/peer-wheels.sh) go before those that Python has. MODELS_SECONDS (240): for the packages of models together. Status 1
# when a part failed, or one that --only names could not run.
set -eu

usage() {
    sed -n 's/^# \{0,1\}//; 2,34p' "$0" >&2
    exit 2
}

all_parts="cpu table open shapes family backward random sequences drafts serve design models python model portable suite sanitizer compare"
[ $# -ge 2 ] || usage
build=$1 out=$2
shift 2
only="" commit="" old="" target=cuda
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case $1 in
    --only) only=${2//,/ } ;;
    --commit) commit=$2 ;;
    --old) old=$2 ;;
    --target) target=$2 ;;
    *) usage ;;
    esac
    shift 2
done
for part in $only; do
    case " $all_parts " in
    *" $part "*) ;;
    *) echo "results: $part is no part: $all_parts are" >&2; exit 2 ;;
    esac
done

fpac=$build/fpac
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=$out/unfinished # files of the part that runs: there also when this is killed
mkdir -p "$out"
if [ -e "$made" ]; then
    aside=$out/cut-off-$(date -u +%Y-%m-%dT%H%M%S)
    mv "$made" "$aside"
    echo "results: a part was cut off before; $aside has what it left" >&2
fi
export FPA_CACHE_DIR=$work/cache CUDA_CACHE_PATH=$work/nvrtc # NVRTC has a cache of its own
mkdir -m 700 "$FPA_CACHE_DIR"

# Wheels of Python alone are archives of what goes into a folder on the path.
for wheel in "$build"/wheels/*.whl; do
    [ -e "$wheel" ] || continue
    "$python" -m zipfile -e "$wheel" "$work/wheels"
    export PYTHONPATH="$work/wheels"
done

# ---- the machine ----

name_commit() {
    if [ -n "$commit" ]; then
        echo "$commit"
    elif git rev-parse --short HEAD 2>/dev/null >"$work/commit"; then
        echo "$(cat "$work/commit")$([ -z "$(git status --porcelain -uno -- . ':!bench/results' ':!*.md')" ] || echo ", changed")"
    else
        echo "unknown (no git here; --commit names it)"
    fi
}

smi() { nvidia-smi -i 0 --query-gpu="$1" --format=csv,noheader,nounits 2>/dev/null | head -n 1; }
cpu_model() { sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1 | grep . || uname -m; }
nvrtc_version() { sed -n 's/.*NVRTC \([0-9.]*\) compiles.*/\1/p' "$work/list" | head -n 1; }
kib() { getconf "$1" 2>/dev/null | awk '{ print $1 ? int($1 / 1024) " KiB" : "unknown" }'; }

gpu_name() {
    smi name | grep . ||
        cat /proc/driver/nvidia/gpus/*/information 2>/dev/null | sed -n 's/^Model: *//p' | head -n 1 | grep . ||
        echo "unknown GPU"
}
driver_version() {
    smi driver_version | grep . ||
        sed -n 's/.*Kernel Module *\([0-9.]*\).*/\1/p' /proc/driver/nvidia/version 2>/dev/null | grep . || echo unknown
}

device() { # cpu or gpu
    case $1 in
    cpu) echo "$(cpu_model), $(nproc) cores" ;;
    gpu) echo "$(gpu_name), driver $(driver_version), CUDA $(nvrtc_version)" ;;
    esac
}

python_versions() {
    command -v "$python" >/dev/null || return 0
    "$python" - torch triton numpy fla-core flash-linear-attention retention mamba-ssm performer-pytorch vidrial einops <<'PY'
import sys
from importlib import metadata
print("python     ", sys.version.split()[0])
for name in sys.argv[1:]:
    try:
        print("           ", name, metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
PY
}

describe_machine() { # cpu or gpu
    echo "date        $(date -u '+%Y-%m-%d %H:%M') UTC"
    echo "commit      $commit_name"
    echo "fpac        $("$fpac" --version | cut -d ' ' -f 2)"
    if [ "$1" = gpu ]; then
        echo "gpu         $(gpu_name)"
        echo "driver      $(driver_version)"
        echo "cuda        NVRTC $(nvrtc_version)"
        if command -v nvidia-smi >/dev/null; then
            echo "power       $(smi power.limit) W at most; clock $(smi clocks.max.sm) MHz at most; $(smi memory.total) MiB"
        fi
    fi
    echo "cpu         $(cpu_model), $(nproc) cores"
    echo "caches      first level $(kib LEVEL1_DCACHE_SIZE), second $(kib LEVEL2_CACHE_SIZE), third $(kib LEVEL3_CACHE_SIZE)"
    echo "memory      $(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
    echo "system      $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), $(uname -sr)"
    echo "compiler    $("${FPA_CC:-cc}" --version 2>/dev/null | head -n 1 || echo none)"
    echo "targets     $(awk '/runs here/ { printf "%s%s", n++ ? ", " : "", $1 }' "$work/list")"
    echo "load        $(cut -d ' ' -f 1-3 /proc/loadavg) (1, 5, 15 minutes, at the start)"
    python_versions
}

# ---- what a part needs: a reason why it cannot run, or nothing ----

lack_file() { [ -x "$1" ] || echo "there is no $1"; }

lack_target() {
    case $target in
    c) ;;
    cuda) grep -q '^cuda:.*runs here' "$work/list" || sed -n 's/^GPU: //p' "$work/list" ;;
    *) grep -q "^$target .*runs here" "$work/list" || echo "$target does not run here" ;;
    esac
}

lack_gpu() {
    grep -q '^cuda:.*runs here' "$work/list" || sed -n 's/^GPU: //p' "$work/list"
}

# The target of the portable kernels on this GPU; nothing where the GPU has no others.
portable_target() {
    awk '/^cuda:.*runs here/ { if ($1 ~ /[a-z]$/) own = 1; else last = $1 } END { if (own) print last }' "$work/list"
}

lacks() { # part
    case $1 in
    cpu) lack_file "$build/bench_c" ;;
    table | shapes | family | random | design | models) lack_target ;;
    backward) lack_gpu; lack_target ;;
    sequences) lack_gpu; lack_file "$build/bench_sequences" ;;
    serve) lack_gpu; lack_file "$build/examples/serve" ;;
    drafts) lack_gpu; lack_file "$build/bench_draft" ;;
    model) lack_gpu; command -v "$python" >/dev/null || echo "there is no $python" ;;
    python)
        lack_target
        command -v "$python" >/dev/null || echo "there is no $python"
        [ -e "$(python_library)" ] || echo "there is no $(python_library): make build/wheel/libfpa.so"
        ;;
    open) lack_gpu; lack_file "$build/bench_cuda_open" ;;
    portable) lack_gpu; [ -n "$(portable_target)" ] || echo "the GPU has no kernels but the portable ones" ;;
    suite) lack_gpu; lack_file "$build/tests/test_cuda" ;;
    sanitizer) lack_gpu; command -v "${SANITIZER:-compute-sanitizer}" >/dev/null || echo "there is no compute-sanitizer" ;;
    compare)
        lack_gpu
        if [ -z "$old" ]; then echo "--old names no older build"; else lack_file "$old/fpac"; fi
        command -v "$python" >/dev/null || echo "there is no $python"
        ;;
    esac
}

# The package's library: that of the wheel needs no Lua on the machine.
python_library() {
    if [ -e build/wheel/libfpa.so ]; then echo build/wheel/libfpa.so; else echo "$build/libfpa.so"; fi
}

kind_of() { # part
    case $1:$target in
    cpu:* | *:c | *:c:*) echo cpu ;;
    *) echo gpu ;;
    esac
}

# shellcheck source=tools/results-parts.sh
. "$(dirname "$0")/results-parts.sh"

# ---- the folder ----

# What says of a text or a table where it is from.
head_of() { # part
    echo "# $(basename "$0") --only $1: $(date -u '+%Y-%m-%d %H:%M') UTC, commit $commit_name, fpac $("$fpac" --version | cut -d ' ' -f 2)"
    echo "# $(device "$(kind_of "$1")")"
}

keep_files() { # part
    local file
    for file in "$made"/*; do
        case $file in
        *.svg) mv "$file" "$out/" ;;
        *) { head_of "$1"; cat "$file"; } >"$out/${file##*/}" ;;
        esac
    done
    rm -rf "$made"
}

# A line a part; parts that this run has nothing to say of keep theirs.
note() { # part, done, failed or skipped, seconds, remark
    local line on=-
    if [ "$2" != skipped ]; then on=$(device "$(kind_of "$1")"); fi
    line=$(printf '%s\t%s\t%d\t%s\t%s\t%s\t%s' "$1" "$2" "$3" "$(date -u +%Y-%m-%d)" "$commit_name" "$on" "$4")
    echo "$line" >>"$work/parts"
    printf '%-8s %-10s %5d s  %s\n' "$2" "$1" "$3" "$4"
}

merge_parts() {
    {
        printf '# part\tbecame\tseconds\tdate\tcommit\tdevice\tfiles, or why\n'
        # a part that was skipped now may have been done before: that line stays
        awk -F '\t' -v OFS='\t' -v order="$all_parts" '
        /^#/ { next }
        FNR == NR || $2 != "skipped" || !($1 in line) { line[$1] = $0 }
        END { count = split(order, of, " "); for (i = 1; i <= count; i++) if (of[i] in line) print line[of[i]] }' \
            "$work/before" "$work/parts"
    } >"$out/parts.tsv"
}

run_part() { # part
    local part=$1 reason start=$SECONDS status=0 files
    reason=$(lacks "$part" | head -n 1)
    if [ -n "$reason" ]; then
        note "$part" skipped 0 "$reason"
        if [ -n "$only" ]; then failed=1; fi
        return
    fi
    describe_machine "$(kind_of "$part")" >"$work/environment"
    echo "---- $part"
    rm -rf "$made"
    mkdir "$made"
    set +e
    "run_$part" 2>&1 | tee "$made/$part.txt"
    status=${PIPESTATUS[0]}
    set -e
    files=$(cd "$made" && printf '%s ' "$part.txt" && ls | grep -vx "$part.txt" | tr '\n' ' ')
    keep_files "$part"
    files=${files% }
    if [ ! -e "$work/described.$(kind_of "$part")" ]; then
        mv "$work/environment" "$out/environment-$(kind_of "$part").txt"
        touch "$work/described.$(kind_of "$part")"
    fi
    if [ "$status" -eq 0 ]; then
        note "$part" "done" $((SECONDS - start)) "$files"
    else
        failed=1
        note "$part" failed $((SECONDS - start)) "status $status; $files"
    fi
}

commit_name=$(name_commit)
"$fpac" list >"$work/list"
touch "$work/parts" "$work/before"
if [ -e "$out/parts.tsv" ]; then cp "$out/parts.tsv" "$work/before"; fi
failed=0
for part in ${only:-$all_parts}; do
    run_part "$part" # the table is whole after each part, should the run be cut off
    merge_parts
done
echo
echo "$out: $(cut -f 1,2 "$work/parts" | awk '{ by[$2] = by[$2] (by[$2] ? ", " : "") $1 } END {
    count = split("done failed skipped", of, " ")
    for (i = 1; i <= count; i++) if (by[of[i]]) printf "%s%s: %s", n++ ? "; " : "", of[i], by[of[i]] }')"
exit $failed
