"""How the package finds libfpa.so, and what it says when it does not."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import LIBRARY, TOP, abi, fpac

ASK = "import fpac, fpac.library as l; print(l.find_library()); print(fpac.library_version())"


class Lookup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def ask(self, package=TOP / "python", **variables):
        """What a fresh process finds: (its lines, the last line of its errors)."""
        environment = {name: value for name, value in os.environ.items() if name != "FPAC_LIBRARY"}
        environment.update({name: str(value) for name, value in variables.items()}, PYTHONPATH=str(package))
        words = [sys.executable, "-c", ASK]
        done = subprocess.run(words, env=environment, cwd=self.folder, capture_output=True, text=True)
        return done.stdout.split(), (done.stderr.strip().splitlines() or [""])[-1]

    def package(self):
        """A copy of the package, as it is when it is installed."""
        shutil.copytree(TOP / "python" / "fpac", self.folder / "site" / "fpac")
        return self.folder / "site"

    def make_library(self, name, text):
        """A shared library that says it is another version."""
        source = self.folder / "it.c"
        source.write_text(text)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.folder / name, source], check=True)
        return self.folder / name

    def test_the_versions_agree(self):
        self.assertEqual(fpac.__version__, (TOP / "VERSION").read_text().strip())
        self.assertEqual(fpac.library_version(), fpac.__version__)

    def test_the_variable_comes_first(self):
        other = self.folder / "other.so"
        other.symlink_to(LIBRARY)
        self.assertEqual(self.ask(FPAC_LIBRARY=other)[0], [str(other), fpac.__version__])

    def test_then_the_library_beside_the_package(self):
        package = self.package()
        beside = package / "fpac" / "libfpa.so"
        beside.symlink_to(LIBRARY)
        self.assertEqual(self.ask(package)[0], [str(beside), fpac.__version__])

    def test_then_the_build_folder_of_a_checkout(self):
        package = self.package().rename(self.folder / "python")
        built = self.folder / "build" / "libfpa.so"
        built.parent.mkdir()
        built.symlink_to(LIBRARY)
        self.assertEqual(self.ask(package)[0], [str(built), fpac.__version__])

    def test_then_the_system_s(self):
        (self.folder / "libfpa.so.0").symlink_to(LIBRARY)
        lines, _ = self.ask(self.package(), LD_LIBRARY_PATH=self.folder)
        self.assertEqual(lines, ["libfpa.so.0", fpac.__version__])

    def test_none(self):
        lines, error = self.ask(self.package())
        self.assertEqual(lines, ["libfpa.so.0"])
        self.assertTrue(error.startswith("fpac.errors.LibraryError: libfpa.so: was found neither in "), error)
        self.assertIn("install the wheel, run `make` in the checkout, or name the file in FPAC_LIBRARY", error)

    def test_one_that_is_not_there(self):
        _, error = self.ask(FPAC_LIBRARY="/nowhere/libfpa.so")
        self.assertIn("LibraryError: /nowhere/libfpa.so: cannot be loaded", error)

    def test_another_version(self):
        other = self.make_library("old.so", 'const char *fpa_version(void) { return "0.0.1"; }')
        _, error = self.ask(FPAC_LIBRARY=other)
        self.assertIn(f"{other}: is libfpa 0.0.1, but this package is fpac {fpac.__version__}", error)

    def test_something_else(self):
        other = self.make_library("else.so", "int something;")
        self.assertIn(f"{other}: is not libfpa", self.ask(FPAC_LIBRARY=other)[1])

    def test_the_library_that_opens_bundles_only(self):
        run = LIBRARY.with_name("libfpa-run.so")
        self.assertIn("libfpa-run only opens bundles", self.ask(FPAC_LIBRARY=run)[1])


class Header(unittest.TestCase):
    """What abi.py and errors.py repeat of fpa.h is what a C compiler reads there."""

    def ask(self, expressions):
        """The values of constant expressions of C."""
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder) / "ask.c", Path(folder) / "ask"
            lines = [f'printf("%lld\\n", (long long)({expression}));' for expression in expressions]
            text = "\n".join(["#include <stdio.h>", '#include "fpa.h"', "int main(void) {", *lines, "return 0; }"])
            source.write_text(text)
            includes = [f"-I{TOP / folder}" for folder in ("runtime/api", "base")]
            subprocess.run([*os.environ.get("CC", "cc").split(), *includes, "-o", program, source], check=True)
            return [int(line) for line in subprocess.run([program], capture_output=True, check=True).stdout.split()]

    def test_structures(self):
        written_out = {
            "device_type": "device.device_type",
            "device_id": "device.device_id",
            "code": "dtype.code",
            "bits": "dtype.bits",
            "lanes": "dtype.lanes",
        }
        structures = (
            (abi.DLTensor, "DLTensor", written_out),
            (abi.Tensors, "fpa_tensors", {}),
            (abi.Accepted, "fpa_accepted", {}),
            (abi.ObjectCall, "fpa_object_call", {}),
            (abi.Options, "fpa_options", {}),
            (abi.Description, "fpa_description", {}),
            (abi.WeightShape, "fpa_weight_shape", {}),
            (abi.LayerPart, "fpa_layer_part", {}),
            (abi.LayerDescription, "fpa_layer_description", {}),
            (abi.ErrorText, "fpa_error", {}),
        )
        asked = {}
        for structure, name, other in structures:
            asked[f"sizeof({name})"] = ctypes.sizeof(structure)
            for field, _ in structure._fields_:
                mine, its = getattr(structure, field), other.get(field, field)
                asked[f"offsetof({name}, {its})"] = mine.offset
                asked[f"sizeof((({name} *)0)->{its})"] = mine.size
        self.assertEqual(dict(zip(asked, self.ask(asked))), asked)

    def test_numbers(self):
        codes = {f"FPA_{code.name}": code.value for code in fpac.Code}
        forms = {f"FPA_FORM_{form.upper()}": number for number, form in enumerate(abi.FORMS)}
        kinds = {"f32": "kDLFloat", "f16": "kDLFloat", "bf16": "kDLBfloat"}
        devices = {"kDLCPU": abi.CPU, "kDLCUDA": abi.CUDA, "FPA_FORM_AUTO": abi.AUTO}
        numbers = {**codes, **forms, **devices, "FPA_FORM_RECURRENT": abi.RECURRENT}
        numbers["FPA_OBJECTS_CHANGED"] = abi.OBJECTS_CHANGED
        self.assertEqual(dict(zip(numbers, self.ask(numbers))), numbers)
        self.assertEqual(self.ask(kinds.values()), [abi.DTYPES[name][0] for name in kinds])


class Nvrtc(unittest.TestCase):
    def test_the_newest_of_the_environment_s_packages_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in (
                "cu13/lib/libnvrtc.so.13",
                "cuda_nvrtc/lib/libnvrtc.so.12",
                "cu13/lib/libnvrtc-builtins.so.13",
            ):
                path = Path(folder, "nvidia", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            ask = "import fpac.nvrtc; print(fpac.nvrtc.find())"
            environment = {**os.environ, "PYTHONPATH": f"{TOP / 'python'}:{folder}"}
            words = [sys.executable, "-S", "-c", ask]
            done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout.strip(), f"{folder}/nvidia/cu13/lib/libnvrtc.so.13")


if __name__ == "__main__":
    unittest.main()
