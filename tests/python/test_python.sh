#!/bin/sh
# The tests of the package, as a program of make test, which copies this file to BUILD/tests/test_python: with the Python that
# has Debian's NumPy, or $TEST_PYTHON. They use BUILD/fpac and BUILD/libfpa.so.
build=$(dirname "$0")/..
python=${TEST_PYTHON:-/usr/bin/python3}
if ! command -v "$python" >/dev/null; then
    echo "[  SKIPPED ] 1 test(s), listed below:"
    echo "[  SKIPPED ] python: there is no $python; TEST_PYTHON names another"
    exit 0
fi
# Kernels are compiled with little optimisation, as by tests/c_hurry.h; those of make test-all as users have them.
if [ "${FPA_TEST_ALL:-0}" = 0 ]; then export FPA_CFLAGS="${FPA_CFLAGS--Og}"; fi
FPAC=$build/fpac FPAC_LIBRARY=$build/libfpa.so PYTHONDONTWRITEBYTECODE=1 exec "$python" tests/python/run.py "$@"
