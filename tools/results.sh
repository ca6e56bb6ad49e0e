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
#   design     what fpac design predicts of 20 heads, beside what it measures: design.txt
#   models     the heads of specs/models beside the packages that their models use: models.txt, models.tsv
#   python     what a call from Python takes beyond the C call: python.txt
#   portable   the portable CUDA kernels, where the GPU has kernels of its own: portable.txt, portable.tsv
#   suite      the tests that need a GPU, also with portable kernels: suite.txt
#   sanitizer  compute-sanitizer's memcheck and racecheck: sanitizer.txt
#   compare    this build and an older one (--old), interleaved: compare.txt, compare.tsv
#
# Without --only every part that can run here; the others are told with what they lack. What a part wrote replaces
# what the folder had; each text and table says at its top when, of which commit and on which device. parts.tsv has
# a line a part, what became of it; environment-cpu.txt and environment-gpu.txt the machine of the last run with
# such a part. --commit names the commit where there is no git. Target: cuda, what the GPU is. Nothing is built:
# BUILD is where make, or tools/gpu-pack.sh, put its programs. Status 1 when a part failed, or one that --only
# names could not run.
set -eu

usage() {
    sed -n 's/^# \{0,1\}//; 2,25p' "$0" >&2
    exit 2
}

all_parts="cpu table open shapes design models python portable suite sanitizer compare"
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
made=$work/made # files of the part that runs
mkdir -p "$out"
export FPA_CACHE_DIR=$work/cache
mkdir -m 700 "$FPA_CACHE_DIR"

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
    "$python" - torch numpy fla-core flash-linear-attention retention vidrial einops <<'PY'
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
    table | shapes | design | models) lack_target ;;
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

# ---- the parts: a part's output is PART.txt; other files go to $made ----

run_cpu() {
    local status=0
    # shellcheck disable=SC2086 # BENCH: words, as make bench takes them
    "$build/bench_c" --tsv "$made/cpu.tsv" ${BENCH:-} || status=1
    OPENBLAS_CORETYPE=Haswell "$build/bench_c" --tsv "$made/cpu.tsv" c:avx2 heads || status=1
    tools/compile-times.sh "$fpac" "$("$fpac" list | awk '/, the best/ { print $1; exit }')" || status=1
    "$fpac" plot "$made/cpu.tsv" --title "$(device cpu)" -o "$made/cpu-time.svg" || status=1
    return $status
}

# The README's picture: lines of the table under shorter names; of several cases of one package the fastest at each
# length, as fpac's auto chooses it.
shorten() { # gpu.tsv
    awk -F '\t' -v OFS='\t' '
    /^#/ || /^skipped/ || $4 <= 1 { next }
    $3 ~ /^tspow2_d64_bf16 bf16 / { name = "power 2, d = 64" }
    $3 ~ /^linear_d64_bf16 bf16 / { name = "linear, d = 64" }
    $3 ~ /^taylor2_d16 bf16 / { name = "taylor 2, d = 16" }
    $1 == "torch" && $3 ~ /^softmax .* d64$/ { name = "softmax, d = 64" }
    $1 == "fla" && $3 ~ /linear_attn d64$/ { name = "linear, d = 64" }
    $1 == "fla" && $3 ~ /_based / { name = "based, d = 16" }
    $1 == "retention" && $3 ~ /^power p2 d64 (chunk|attention)/ { name = "power 2, d = 64" }
    name == "" { next }
    {
        key = $1 OFS $2 OFS name OFS $4 OFS $5 OFS $6
        if (!(key in ns)) order[++count] = key
        if (!(key in ns) || $7 < ns[key]) { ns[key] = $7 + 0; ms[key] = $8 }
        name = ""
    }
    END { for (i = 1; i <= count; i++) print order[i], ns[order[i]], ms[order[i]] }' "$1"
}

run_table() {
    local status=0
    tools/gpu-table.sh "$build" --target "$target" --only power,linear,taylor,dense,decode --out "$work/table" || status=1
    for kind in time share decode; do
        if [ -e "$work/table/$kind.svg" ]; then mv "$work/table/$kind.svg" "$made/"; fi
    done
    if [ -e "$work/table/peers.err" ]; then tail -n 20 "$work/table/peers.err"; fi
    mv "$work/table/measured.tsv" "$made/gpu.tsv"
    shorten "$made/gpu.tsv" >"$made/speed.tsv"
    "$fpac" plot "$made/speed.tsv" --title "$(device "$(kind_of table)" | cut -d , -f 1), bf16, 16 heads, 64 Ki tokens in all" \
        -o "$made/speed.svg" || status=1
    return $status
}

run_open() { tools/gpu-table.sh "$build" --only open --no-peers --out "$work/open" && cat "$work/open/opens.txt"; }

# Each head at three lengths; 16 heads, 64 Ki tokens.
run_shapes() {
    local status=0 head length targets of form
    targets="$target $(portable_target)"
    for of in $targets; do
        for length in 65536 4096 1024; do
            # portable kernels at one length
            if [ "$of" != "$target" ] && [ $length -ne 4096 ]; then continue; fi
            form=auto
            if [ $length -eq 4096 ]; then form=chunked; fi
            echo
            echo "$of, $length tokens, --form $form"
            for head in $("$fpac" list bench/shapes.lua | awk '{ print $1 }'); do
                if "$fpac" bench bench/shapes.lua --head "$head" --target "$of" --heads 16 --length $length \
                    --batch $((65536 / length)) --form $form --tsv "$made/shapes.tsv" >"$work/line" 2>"$work/errors"; then
                    tail -n 1 "$work/line"
                else
                    echo "failed: $head: $(tail -n 1 "$work/errors")"
                    status=1
                fi
            done
        done
    done
    return $status
}

# The same heads for one long sequence and for several: a step of one sequence is round trips to memory, of sixteen bytes.
run_design() {
    local status=0 size sizes="65536 1 16 bf16,4096 16 16 bf16"
    if [ "$(kind_of design)" = cpu ]; then sizes="4096 1 2 f32"; fi
    local IFS=,
    for size in $sizes; do
        design_of ${size// /,} || status=1
    done
    return $status
}

design_of() { # length batch heads dtype
    local options=(--d 64 --dv 64 --state 1MiB --target "$target" --length "$1" --batch "$2" --heads "$3" --dtype "$4" --measure 20)
    local IFS=' '
    echo "\$ fpac design ${options[*]}"
    "$fpac" design "${options[@]}" 2>&1
    echo
}

# A line a head and length: fpac beside every case of a package whose first word is the head's name.
join_models() { # models.tsv
    awk -F '\t' '
    /^#/ || /^skipped/ || NF < 8 { next }
    { split($3, of, " ") }
    $1 == "fpac" { order[++count] = of[1] "\t" $4; ns[of[1], $4] = $7; next }
    { at = of[1] SUBSEP $4; found[at]++; line[at, found[at]] = sprintf("%s %s\t%.3f", $1, substr($3, length(of[1]) + 2), $7) }
    END {
        printf "%-22s %7s %10s   %-44s %10s %7s\n", "head", "tokens", "fpac ns", "package", "ns", "ratio"
        for (i = 1; i <= count; i++) {
            split(order[i], key, "\t")
            mine = ns[key[1], key[2]]
            at = key[1] SUBSEP key[2]
            for (j = 1; j <= found[at] || j == 1; j++) {
                split(line[at, j], other, "\t")
                printf "%-22s %7s %10s   %-44s %10s %7s\n", j == 1 ? key[1] : "", j == 1 ? key[2] : "",
                    j == 1 ? sprintf("%.3f", mine) : "", other[1] == "" ? "none" : other[1], other[2],
                    other[2] == "" ? "" : sprintf("%.2f", other[2] / mine)
            }
        }
    }' "$1"
    awk -F '\t' '/^skipped/ { printf "skipped: %s: %s: %s\n", $2, $3, $4 }' "$1"
}

# Heads that the target does not serve are told by fpac bench, and are no failure.
run_models() {
    local spec length
    for spec in specs/models/*.lua; do
        for length in 65536 4096; do
            "$fpac" bench "$spec" --dtype bf16 --target "$target" --heads 16 --length $length --batch $((65536 / length)) \
                --tsv "$made/models.tsv" >"$work/line" 2>"$work/errors" || sed 's/^fpac: //' "$work/errors"
        done
    done
    "$python" bench/peers/models.py --lengths 65536,4096 --seconds 150 2>"$work/errors" |
        grep -a -E $'^(#|skipped\t|([^\t]*\t){7}[^\t]*$)' >>"$made/models.tsv" || tail -n 3 "$work/errors"
    join_models "$made/models.tsv"
}

run_python() {
    echo "\$ FPAC_LIBRARY=$(python_library) $python bench/python_overhead.py --target $target --limit 10"
    FPAC_LIBRARY=$(python_library) "$python" bench/python_overhead.py --target "$target" --limit 10
}

run_portable() {
    tools/gpu-bench.sh "$build" --target "$(portable_target)" --tsv "$made/portable.tsv" --no-open
}

run_suite() {
    local status=0 portable tests=$build/tests
    tools/gpu-test.sh "$build" "$tests"/test_cuda "$tests"/test_cuda_{calls,operands,mutation,recent,window,ptx} \
        "$tests"/test_{shipped,parity} || status=1
    portable=$(portable_target)
    if [ -n "$portable" ]; then
        echo "portable kernels ($portable):"
        FPA_TEST_TARGET=$portable FPA_REQUIRE_CUDA=1 FPAC=$fpac tools/run-tests.sh "$build" \
            "$tests"/test_{shipped,parity,cuda_calls} || status=1
    fi
    return $status
}

sanitize() { # tool, then arguments of gpu-sanitize.sh
    local status=0
    tools/gpu-sanitize.sh "$build" --tool "$@" --jobs "$(nproc | awk '{ print $1 < 16 ? $1 : 16 }')" >"$work/sanitized" 2>&1 || status=1
    awk -v what="$*" '
    /^----/ { complaint = 1 }
    complaint { lines[++count] = $0; next }
    {
        heads++
        rest = $0
        gsub(/(chunked|parallel|recurrent): 0 [^;]*;/, "", rest)
        if (split(rest, words, " ") > 1) lines[++count] = $0; else clean++
    }
    END {
        printf "%s: %d heads, %d without an error or a hazard\n", what, heads, clean
        for (i = 1; i <= count; i++) print "  " lines[i]
    }' "$work/sanitized"
    return $status
}

run_sanitizer() {
    local status=0 tool portable
    portable=$(portable_target)
    echo "Heads applied to 900 tokens (chunked), 300 (parallel) and 3 (recurrent), 2 sequences, 2 heads."
    for tool in memcheck racecheck; do
        sanitize $tool --dtype bf16 || status=1
        sanitize $tool bench/shapes.lua || status=1
        if [ -n "$portable" ]; then sanitize $tool --target "$portable" || status=1; fi
    done
    return $status
}

run_compare() { "$python" bench/compare.py "$old" "$build" --tsv "$made/compare.tsv"; }

# ---- the folder ----

# What says of a text or a table where it is from.
head_of() { # part
    echo "# $(basename "$0") --only $1: $(date -u '+%Y-%m-%d %H:%M') UTC, commit $commit_name, fpac $("$fpac" --version | cut -d ' ' -f 2)"
    echo "# $(device "$(kind_of "$1")")"
}

keep_files() { # part
    local file
    mv "$work/said" "$made/$1.txt"
    for file in "$made"/*; do
        case $file in
        *.svg) mv "$file" "$out/" ;;
        *) { head_of "$1"; cat "$file"; } >"$out/${file##*/}" ;;
        esac
    done
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
    "run_$part" 2>&1 | tee "$work/said"
    status=${PIPESTATUS[0]}
    set -e
    files=$(ls "$made")
    keep_files "$part"
    files="$part.txt${files:+ ${files//$'\n'/ }}"
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
