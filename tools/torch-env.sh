#!/bin/sh
# A Python that has torch, in a virtual environment of its own: tools/torch-env.sh BUILD prints its path. TORCH_PYTHON names
# another one, which is taken as it is. Status 1, with a line that says why: torch cannot be had here.
#
# The wheel for processors alone is a tenth of the other; a machine may reach only the package index that pip knows.
set -eu
if [ "${TORCH_PYTHON:-}" ]; then
    echo "$TORCH_PYTHON"
    exit 0
fi
folder=$(realpath "$1")/torch
python=$folder/bin/python
log=$folder.log
if ! "$python" -c 'import torch, numpy' 2>/dev/null; then
    {
        "${PYTHON:-python3}" -m venv --clear "$folder" &&
            { "$python" -m pip install torch --index-url https://download.pytorch.org/whl/cpu ||
                "$python" -m pip install torch; } &&
            "$python" -m pip install numpy
    } >"$log" 2>&1 || {
        echo "torch cannot be installed: $(tail -n 1 "$log"); $log has the rest, TORCH_PYTHON names a Python that has it" >&2
        exit 1
    }
fi
echo "$python"
