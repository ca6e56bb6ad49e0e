#!/usr/bin/env bash
# The demonstration: tools/demo.sh BUILD
#
# Compiles and verifies the heads of specs/ but those of the paper's tables (make test verifies these, too),
# measures each form; does the same on a GPU, or only compiles two of them for one where there is none; then lets
# heads of growing state memorise a real text. Ends with the status of the verification. A minute on two cores without a GPU.
set -eu

build=$1
status=0

# Threads of kernels sleep where they wait for each other, as compilers want the cores at the same time.
export OMP_WAIT_POLICY=passive

# Each kind of head is in these.
GLOBIGNORE=specs/appendix.lua:specs/table1.lua
specs=(specs/*.lua)
unset GLOBIGNORE

echo "Heads in specs/, all but those of appendix.lua and table1.lua: compiled here, compared with the formula in"
echo "double precision, measured."
echo "error: largest error over largest result; of bound: share of the error bound; rms: over plain float32;"
echo "ns/token/head: with one head on each of the $(nproc) cores."
echo
"$build/fpac" verify --time "${specs[@]}" || status=$?
echo

# Two heads show the path where there is no GPU to run them on: one in f32 for any Hopper, one in bf16 whose
# kernels are of warpgroups. A process each, into a folder of its own.
compile_for_gpu() {
    local start=$SECONDS
    if printf '%s\0' specs/tspow.lua tspow2_d64_b8 cuda:sm_90 specs/storage.lua tspow2_d64_bf16 cuda:sm_90a |
        xargs -0 -n 3 -P "$(nproc)" sh -c \
            '"$1" gen "$3" --head "$4" --target "$5" --object -o "$2/$4"' - "$build/fpac" "$folder" \
            2>"$folder/errors"; then
        echo "CUDA: two of these heads as modules for sm_90 and sm_90a, compiled in $((SECONDS - start)) s, not run:" \
            "there is no GPU here."
        (cd "$folder" && du -b */*.cubin | awk '{printf "  %-40s %8d bytes\n", $2, $1}')
    else
        echo "CUDA: nothing was compiled, or not all: $(head -n 1 "$folder/errors")"
    fi
}

remember_text() {
    echo "What a state is for: each word of a text is stored with its successor, then all are asked again."
    echo
    "$build/examples/recall" ${RECALL_TEXT:+"$RECALL_TEXT"}
}

if "$build/fpac" list | grep -q '^cuda:.*runs here'; then
    echo "The same on the GPU."
    echo
    "$build/fpac" verify --time --target cuda "${specs[@]}" || status=$?
    echo
    remember_text || status=$?
else
    # Compiling for GPUs has nothing to wait for: it goes on beside what recalls, and says its own at the end.
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    compile_for_gpu >"$folder/said" &
    remember_text || status=$?
    wait
    echo
    cat "$folder/said"
fi
exit $status
