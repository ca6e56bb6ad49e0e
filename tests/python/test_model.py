"""The scripts that hold the model of GPUs against measurements: what they measure, and what they make of it."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import COMMAND, TOP

sys.path.insert(0, str(TOP / "bench"))
import measure_model  # noqa: E402
import predict_cuda  # noqa: E402
import regret  # noqa: E402

FIELDS = "\t".join(
    ["# head", "dtype", "target", "form", "length", "batch", "heads", "plan", "mechanism", "candidate"]
    + ["predicted_seconds", "measured_seconds", "chosen"]
)


def row(plan: str, candidate: str, predicted: float, measured: float, chosen: int) -> str:
    return f"h\tbf16\tcuda:sm_90a\tchunked\t64\t1\t2\t{plan}\tsplit\t{candidate}\t{predicted}\t{measured}\t{chosen}"


class Model(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def printed(self, main, *words: str) -> str:
        out = io.StringIO()
        with mock.patch.object(sys, "argv", ["script", *words]), contextlib.redirect_stdout(out):
            self.assertIn(main(), (0, None))
        return out.getvalue()

    def test_regret_is_the_chosen_time_over_the_least_of_its_own_and_of_all(self):
        lines = [
            FIELDS,
            row("a", "1 segment", 3e-6, 4e-6, 1),
            row("a", "2 segments", 5e-6, 3.2e-6, 0),
            row("b", "", 9e-6, 2e-6, 0),
        ]
        path = self.folder / "candidates.tsv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        text = self.printed(regret.main, str(path))
        self.assertIn("1 calls of 1 heads, 3 candidates timed: regret 25.00 %", text)
        self.assertIn("100.00 % and 100.0 % among all", text)
        self.assertIn("median error 25.0 %", text)

    def test_a_selection_has_the_heads_wanted_and_no_others(self):
        for spec, heads in ((measure_model.USER, ["l_32_32", "d_48_48"]), (measure_model.SHAPES, measure_model.OTHER)):
            text = measure_model.selection(self.folder, str(TOP / spec), heads)
            out = subprocess.run([COMMAND, "list", text], capture_output=True, text=True, check=True).stdout
            self.assertEqual(sorted(line.split()[0] for line in out.splitlines()), sorted(heads))

    def test_every_candidate_and_every_head_is_measured_on_a_cpu_too(self):
        few = {"REGRET": ["l_32_32"], "REST": ["l_64_64"], "OTHER": ["l_16_64"], "PORTABLE": [], "CALLS": [(64, 1, 1)]}
        words = measure_model.words_of
        with (
            mock.patch.multiple(
                measure_model, USER=str(TOP / measure_model.USER), SHAPES=str(TOP / measure_model.SHAPES)
            ),
            mock.patch.multiple(
                measure_model, **few, words_of=lambda target, form, call: words(target, form, (64, 1, 1))
            ),
        ):
            out = self.printed(
                measure_model.main, "--build", str(COMMAND.parent), "--target", "c", "--portable", "c", str(self.folder)
            )
        self.assertIn("open are 3 of 3", out)
        groups = predict_cuda.read_groups(self.folder / "predict-gpu.tsv")
        self.assertEqual(
            [sorted(heads) for _, heads in groups], [["l_32_32", "l_64_64"], ["l_16_64"], ["l_32_32", "l_64_64"]]
        )
        self.assertIn("1 calls of 1 heads", self.printed(regret.main, str(self.folder / "candidates.tsv")))


if __name__ == "__main__":
    unittest.main()
