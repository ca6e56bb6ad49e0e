#!/usr/bin/env bash
# The demonstration: tools/demo.sh BUILD
#
# Compiles and verifies heads of each kind (make test-all verifies all of specs/), measures each form; does the same on a
# GPU, or only compiles one of them for one where there is none; then lets heads of growing state memorise a real text. Ends with the status of the verification. A minute on two cores without a GPU.
set -eu

build=$1
status=0

# Threads of kernels sleep where they wait for each other, as compilers want the cores at the same time.
export OMP_WAIT_POLICY=passive

# Each kind of head is in these: powers in mixed and gated, heads without a mask in maps and favor. Linear ones recall.
specs=(specs/{taylor,gated,mixed,trainable,maps,favor,window}.lua)

# verify [OPTIONS]: that one of tspow.lua which is the paper's, then the others
verify() {
    "$build/fpac" verify --time "$@" specs/tspow.lua --head tspow2_d64_b8 || status=$?
    echo
    "$build/fpac" verify --time "$@" "${specs[@]}" || status=$?
    echo
}

echo "Heads in specs/, of each kind: compiled here, compared with the formula in double precision, measured."
echo "error: largest error over largest result; of bound: share of the error bound; rms: over plain float32;"
echo "ns/token/head: with one head on each of the $(nproc) cores."
echo
verify

gen_for_gpu() {
    "$build/fpac" gen specs/storage.lua --head linear_d64_bf16 --target cuda:sm_90a --object -o "$folder/head" \
        2>"$folder/errors" >&2
}

# One head shows the path where there is no GPU to run it on: in bf16, with kernels of warpgroups. NVRTC 13 needs a third of the
# time without most of its optimisation.
compile_for_gpu() {
    local start=$SECONDS how=" without optimisation"
    if FPA_NVRTC_FLAGS=--Ofast-compile=max gen_for_gpu || { how= && gen_for_gpu; }; then
        echo "CUDA: a head as a module for sm_90a, compiled$how in $((SECONDS - start)) s, not run: there is no GPU here."
        (cd "$folder/head" && du -b *.cubin | awk '{printf "  %-40s %8d bytes\n", $2, $1}')
    else
        echo "CUDA: nothing was compiled: $(head -n 1 "$folder/errors")"
    fi
}

# They are verified on all cores, and then taken from the cache.
remember_text() {
    "$build/fpac" verify examples/recall.lua >"$folder/verified" || cat "$folder/verified"
    echo "What a state is for: each word of a text is stored with its successor, then all are asked again."
    echo
    "$build/examples/recall" ${RECALL_TEXT:+"$RECALL_TEXT"}
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if "$build/fpac" list | grep -q '^cuda:.*runs here'; then
    echo "The same on the GPU."
    echo
    verify --target cuda
    remember_text || status=$?
else
    # Compiling for GPUs has nothing to wait for: it goes on beside what recalls, and says its own at the end.
    compile_for_gpu >"$folder/said" &
    remember_text || status=$?
    wait
    echo
    cat "$folder/said"
fi
exit $status
