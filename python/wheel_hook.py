"""What hatchling asks while it builds the wheel: the library's files, and the tag of a wheel for one system."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """tools/wheel.sh says where the files are that belong beside the package, and for which platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # the checkout's build folder has the library
        folder = Path(os.environ.get("FPAC_WHEEL_FILES", ""))
        if not (folder / "libfpa.so").is_file():
            raise RuntimeError("libfpa.so is missing: `make wheel` builds it, and the wheel")
        files = [path for path in folder.rglob("*") if path.is_file()]
        build_data["force_include"] = {str(path): f"fpac/{path.relative_to(folder)}" for path in files}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['FPAC_WHEEL_PLATFORM']}"
