"""NVRTC of NVIDIA's wheel (`pip install fpac[cuda]`).

libfpa looks for NVRTC in CUDA's folders and then asks the loader (runtime/cuda/nvrtc_library.c), which does not know
this environment's packages. What is loaded already the loader finds by its name."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import threading
from pathlib import Path

_FOLDERS = ("cu[1-9]*", "cuda_nvrtc")
_lock = threading.Lock()
_done = False


def find() -> Path | None:
    """The newest libnvrtc of this environment's packages `nvidia`."""
    spec = importlib.util.find_spec("nvidia")
    roots = spec.submodule_search_locations if spec else None
    found = [
        path for root in roots or () for folder in _FOLDERS for path in Path(root).glob(f"{folder}/lib/libnvrtc.so.*")
    ]
    return max(found, key=lambda path: [int(number) for number in re.findall(r"\d+", path.name)], default=None)


def preload() -> None:
    """Once; nothing when FPA_LIBNVRTC names one. libfpa says what is missing when there is none."""
    global _done
    with _lock:
        if _done or os.environ.get("FPA_LIBNVRTC"):
            return
        _done = True
        path = find()
        if path is not None:
            try:
                ctypes.CDLL(str(path))
            except OSError:
                pass  # libfpa looks elsewhere, and says why that one cannot be loaded
