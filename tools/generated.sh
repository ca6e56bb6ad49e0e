#!/usr/bin/env bash
# Write the exemplars of generated code: tools/generated.sh FPAC FOLDER
#
# One folder a head. Targets are named, so that every machine writes the same bytes.
set -eu

fpac=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder"
while read -r spec head target option; do
    "$fpac" gen "$spec.lua" --head "$head" --target "$target" ${option:+"$option"} -o "$folder/$head"
done <<'LIST'
specs/linear linear_d64 c:avx512
specs/tspow tspow2_d64_b8 c:avx512
specs/gated gated_linear_d32 c:avx2 --backward
specs/trainable trainable_dense c:neon
specs/storage tspow2_d32_bf16 c:avx512bf16
LIST
# CUDA kernels as text only: the bytes of a cubin are NVRTC's and change with its version.
while read -r spec head target dtype option; do
    mkdir -p "$folder/$head"
    "$fpac" explain "$spec.lua" --head "$head" --target "$target" --dtype "$dtype" --dump=source \
        ${option:+"$option"} </dev/null >"$folder/$head/$head${option:+.backward}.cu"
done <<'LIST'
specs/storage linear_d64_bf16 sm_90 bf16
specs/power power3_d16 sm_80 bf16
specs/linear linear_d24_v48 sm_90a f16
specs/linear linear_d64 sm_90a f32
specs/gated gated_linear_d32 sm_90a bf16
specs/gated gated_linear_d32 sm_90a bf16 --backward
specs/taylor taylor2_d16 sm_90a bf16
specs/storage tspow2_d64_bf16 sm_90a bf16
generated/wide_values inhomogeneous2_d32_v256 sm_90a bf16
specs/trainable trainable_diagonal sm_90a bf16
specs/fourier fourier_grid_d16 sm_90a bf16
LIST
