#!/usr/bin/env bash
# The wheel of the Python package: tools/wheel.sh BUILD (make wheel), dist/fpac-VERSION-py3-none-PLATFORM.whl
#
# BUILD/wheel has what goes beside the package (tools/wheel-files.sh). The platform is manylinux_2_36, Debian 12's glibc.
# pip fetches the backend (hatchling) from PyPI. The same sources and packages give the same bytes.
set -eu

FPAC_WHEEL_FILES=$(realpath "$1/wheel") FPAC_WHEEL_PLATFORM=manylinux_2_36_$(uname -m)
export FPAC_WHEEL_FILES FPAC_WHEEL_PLATFORM
rm -f dist/fpac-*.whl
"${PYTHON:-python3}" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
ls dist/fpac-*.whl
