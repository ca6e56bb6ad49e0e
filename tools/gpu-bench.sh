#!/usr/bin/env bash
# Measure the CUDA kernels on this machine's GPU, without peers:
#
#   tools/gpu-bench.sh BUILD [--target TARGET] [--tsv FILE] [--no-open]
#
# 16 heads, 1 Mi token-heads in all, bf16; medians; each line with its own measured copy and matrix product.
# Ends with the times of fpa_open, into an empty cache. Target: cuda, what the GPU is; cuda:sm_90 measures the
# portable kernels on an H100 or H200. --tsv adds lines for fpac plot to a file. Status 1 when a line failed.
set -eu

usage() {
    sed -n 's/^# \{0,1\}//; 2,8p' "$0" >&2
    exit 2
}

[ $# -ge 1 ] || usage
build=$1
shift
fpac=$build/fpac
title=yes target=cuda tsv="" opens=yes failed=0
while [ $# -gt 0 ]; do
    case $1 in
    --target) [ $# -ge 2 ] || usage; target=$2; shift ;;
    --tsv) [ $# -ge 2 ] || usage; tsv=$2; shift ;;
    --no-open) opens=no ;;
    *) usage ;;
    esac
    shift
done

bench() { # spec head length batch form [options]
    local spec=$1 head=$2 length=$3 batch=$4 form=$5
    shift 5
    if ! "$fpac" bench "specs/$spec.lua" --head "$head" --dtype bf16 --target "$target" --length "$length" \
        --batch "$batch" --form "$form" ${tsv:+--tsv "$tsv"} "$@" >"$out" 2>"$out.err"; then
        echo "failed: $head, $form, L $length, batch $batch: $(tail -n 1 "$out.err")"
        failed=1
        return
    fi
    if [ $title = yes ]; then grep -E 'copy|^head ' "$out"; fi
    title=no
    tail -n 1 "$out" | sed "s/$/  L $length, batch $batch${*:+, $*}/"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
export FPA_CACHE_DIR=$work/cache CUDA_CACHE_PATH=$work/nvrtc # NVRTC keeps what it compiled, too
mkdir -m 700 "$FPA_CACHE_DIR"

date -u '+%Y-%m-%d'
for length in 65536 16384 4096 1024; do
    bench storage tspow2_d64_bf16 $length $((65536 / length)) chunked --heads 16
done
bench storage tspow2_d64_bf16 1024 64 parallel --heads 16
for length in 65536 16384 4096 1024; do
    bench storage linear_d64_bf16 $length $((65536 / length)) chunked --heads 16
done
bench tspow tspow2_d64_b1 65536 1 chunked --heads 16
bench tspow tspow2_d64_b16 65536 1 chunked --heads 16
bench tspow tspow3_d32 65536 1 chunked --heads 16
bench taylor taylor2_d16 4096 16 chunked --heads 16
bench taylor taylor2_d16 65536 1 chunked --heads 16
bench mixed dense_16x32_d64 65536 1 chunked --heads 16
bench gated gated_power2_d64 65536 1 chunked --heads 16
bench storage tspow2_d64_bf16 65536 1 chunked --heads 1
bench storage tspow2_d64_bf16 1 128 recurrent --heads 16
case $target in cuda*) bench storage tspow2_d64_bf16 1 1 recurrent --heads 16 --graph ;; esac
if [ $opens = yes ]; then
    rm -rf "$FPA_CACHE_DIR" "$CUDA_CACHE_PATH"
    mkdir -m 700 "$FPA_CACHE_DIR"
    "$build/bench_cuda_open" specs/*.lua || failed=1
fi
exit $failed
