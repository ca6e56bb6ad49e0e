#!/usr/bin/env bash
# The wheel can be used: tools/wheel-check.sh (make wheel-check)
#
# Installs dist/fpac-*.whl in a fresh virtual environment, and there, in an empty folder, with nothing from this checkout:
# opens a head, computes, compares with the formula. NumPy is that of $PYTHON, or is fetched.
set -eu

python=${PYTHON:-python3}
wheel=$(realpath dist/fpac-*.whl)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv --system-site-packages "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "${wheel}[numpy]"
mkdir "$work/empty" && cd "$work/empty"
env -u FPAC_LIBRARY -u PYTHONPATH -u LD_LIBRARY_PATH FPA_CACHE_DIR="$work/cache" "$work/venv/bin/python" - <<'PYTHON'
import fpac, fpac.library, numpy as np

assert "/venv/" in fpac.library.find_library(), fpac.library.find_library()
head = fpac.head("return head { name = 'mine', d = 16, dv = 8, terms = power { degree = 2 } }")
q, k, v = (np.random.default_rng(0).standard_normal((1, 100, 2, width), np.float32) for width in (16, 16, 8))
score = np.tril(np.einsum("blhd,bmhd->bhlm", q, k) ** 2)
error = abs(head(q, k, v) - np.einsum("bhlm,bmhd->blhd", score, v)).max()
assert error < 1e-2, error
print(f"fpac {fpac.__version__}, {fpac.library.find_library().split('/venv/')[1]}: {head}, error {error:.1e}")
PYTHON
