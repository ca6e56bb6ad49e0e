#!/usr/bin/env bash
# The demonstration: tools/demo.sh BUILD
#
# Compiles and verifies every head in specs/, measures each form; does the same on a GPU, or only
# compiles for one where there is none; then lets heads of growing state memorise a real text. Ends
# with the status of the verification.
set -eu

build=$1
status=0

echo "Every head in specs/: compiled here, compared with the formula in double precision, measured."
echo "error: largest error over largest result; of bound: share of the error bound; rms: over plain float32;"
echo "ns/token/head: with one head on each of the $(nproc) cores."
echo
"$build/fpac" verify --time specs/*.lua || status=$?
echo

# One spec a process, so that all cores compile; each into a folder of its own.
compile_for_gpu() {
    local folder start=$SECONDS
    folder=$(mktemp -d)
    if printf '%s\0' specs/*.lua |
        xargs -0 -I{} -P "$(nproc)" sh -c '"$1" gen "$3" --target cuda:sm_90 --object -o "$2/$(basename "$3")"' \
            - "$build/fpac" "$folder" {} 2>"$folder/errors"; then
        echo "CUDA: the same heads as $(find "$folder" -name '*.cubin' | wc -l) modules for sm_90, compiled in" \
            "$((SECONDS - start)) s, not run: there is no GPU here."
    else
        echo "CUDA: nothing was compiled, or not all: $(head -n 1 "$folder/errors")"
    fi
    rm -rf "$folder"
}

if "$build/fpac" list | grep -q '^cuda:.*runs here'; then
    echo "The same on the GPU."
    echo
    "$build/fpac" verify --time --target cuda specs/*.lua || status=$?
else
    compile_for_gpu
fi

echo
echo "What a state is for: each word of a text is stored with its successor, then all are asked again."
echo
"$build/examples/recall" ${RECALL_TEXT:+"$RECALL_TEXT"}
exit $status
