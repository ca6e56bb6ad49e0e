#!/usr/bin/env bash
# The packages of bench/peers/wheels.txt, as wheels, into BUILD/gpu/wheels (make peer-wheels), where tools/results.sh of a packed
# BUILD finds them:
#
#   tools/peer-wheels.sh BUILD [PYTHON]    PYTHON: one that has torch, for mamba-ssm's wheel
#
# mamba-ssm has no wheel on the index: without its CUDA extension, which Mamba-2's Triton kernels do not call, one is built
# where PYTHON has torch, which its setup imports; elsewhere that is told, and the others are fetched.
set -eu

build=$1
with_torch=${2:-$build/torch/bin/python}
python=${PYTHON:-python3}
wheels=$build/gpu/wheels
limit_kib=20480
mamba="mamba-ssm==2.3.2.post1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$wheels"
rm -f "$wheels"/*.whl
"$python" -m pip download --quiet --no-deps --only-binary=:all: -d "$wheels" -r bench/peers/wheels.txt

# With what its build asks for beside torch, in a folder of its own: an isolated build would fetch torch once more.
build_mamba() {
    "$with_torch" -m pip install --quiet --target "$work/site" setuptools wheel packaging ninja &&
        PYTHONPATH=$work/site MAMBA_FORCE_BUILD=TRUE MAMBA_SKIP_CUDA_BUILD=TRUE \
            "$with_torch" -m pip wheel --quiet --no-deps --no-build-isolation -w "$wheels" "$mamba"
}
if ! "$with_torch" -c 'import torch' 2>/dev/null; then
    echo "peer-wheels: $with_torch has no torch (tools/torch-env.sh makes one that has): without $mamba" >&2
elif ! build_mamba >"$work/log" 2>&1; then
    echo "peer-wheels: without $mamba: $(tail -n 1 "$work/log")" >&2
fi

for wheel in "$wheels"/*.whl; do
    case $wheel in
    *-none-any.whl) ;;
    *)
        echo "peer-wheels: $wheel is not of Python alone, and may not load on another machine" >&2
        exit 1
        ;;
    esac
done
size=$(du -sk "$wheels" | cut -f 1)
if [ "$size" -gt $limit_kib ]; then
    echo "peer-wheels: $wheels has $size KiB; at most $limit_kib are meant to travel" >&2
    exit 1
fi
echo "$wheels: $(find "$wheels" -name '*.whl' | wc -l) wheels, $size KiB"
