#!/bin/sh
# make torch-test: the tests of the package that need torch, those of docs/python.md among them, in an environment that
# tools/torch-env.sh makes below BUILD. Where torch cannot be had they are one skipped test.
set -eu
build=$1
if ! python=$("$(dirname "$0")/torch-env.sh" "$build"); then
    echo "[  SKIPPED ] 1 test(s), listed below:"
    echo "[  SKIPPED ] torch: there is no Python with torch"
    exit 0
fi
FPAC=$build/fpac FPAC_LIBRARY=$build/libfpa.so PYTHONDONTWRITEBYTECODE=1 exec "$python" \
    tests/python/run.py 'test_torch*.py' test_docs.py test_positions.py test_window.py
