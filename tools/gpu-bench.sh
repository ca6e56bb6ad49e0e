#!/usr/bin/env bash
# Measure the CUDA kernels on this machine's GPU: tools/gpu-bench.sh BUILD
#
# 16 heads, 1 Mi token-heads in all, bf16; medians; each line with its own measured copy and matrix
# product. Ends with the times of fpa_open, into an empty cache.
set -eu

build=$1
fpac=$build/fpac
title=yes

bench() { # spec head length batch form [options]
    local spec=$1 head=$2 length=$3 batch=$4 form=$5
    shift 5
    "$fpac" bench "specs/$spec.lua" --head "$head" --dtype bf16 --target cuda --length "$length" \
        --batch "$batch" --form "$form" "$@" >"$out"
    if [ $title = yes ]; then grep -E 'copy|^head ' "$out"; fi
    title=no
    tail -n 1 "$out" | sed "s/$/  L $length, batch $batch${*:+, $*}/"
}

out=$(mktemp)
cache=$(mktemp -d)
trap 'rm -rf "$out" "$cache"' EXIT
export FPA_CACHE_DIR=$cache

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
bench storage tspow2_d64_bf16 1 1 recurrent --heads 16 --graph
rm -rf "$cache"
mkdir -m 700 "$cache"
"$build/bench_cuda_open" specs/*.lua
