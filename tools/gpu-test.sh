#!/usr/bin/env bash
# Run the tests that need a GPU, and fail without one: tools/gpu-test.sh BUILD [PROGRAM...]
#
# BUILD is where make, or tools/gpu-pack.sh, put fpac and tests/. Nothing is built. Without
# programs: every test_cuda*, and the heads and parity cases that run on any target: on FPA_TEST_TARGET,
# or cuda, which is what the GPU is. cuda:sm_90a tests kernels of warpgroups on an H100 or H200.
set -eu

build=$1
shift
if [ $# -eq 0 ]; then
    for program in "$build"/tests/test_cuda* "$build"/tests/test_shipped "$build"/tests/test_parity; do
        case ${program##*/} in *.*) ;; *) set -- "$@" "$program" ;; esac # logs lie beside them
    done
fi

export FPAC=${FPAC:-$build/fpac} FPA_TEST_TARGET=${FPA_TEST_TARGET:-cuda} FPA_REQUIRE_CUDA=1
status=0
"$FPAC" list | grep -E '^(cuda|GPU)' || true
tools/run-tests.sh "$build" "$@" || status=1
for dtype in bf16 f16; do
    echo "parity cases in $dtype:"
    FPA_TEST_DTYPE=$dtype tools/run-tests.sh "$build" "$build/tests/test_parity" || status=1
done
exit $status
