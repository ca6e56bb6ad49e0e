"""examples/train: a few steps of both tasks leave a table and a picture; batches ask what they say."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

from support import LIBRARY, TOP

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

FOLDER = TOP / "examples" / "train"
sys.path.insert(0, str(FOLDER))

from tasks import NOT_ASKED, Recall, Text  # noqa: E402


def train(*words):
    environment = {**os.environ, "PYTHONPATH": str(TOP / "python"), "FPAC_LIBRARY": str(LIBRARY)}
    call = [sys.executable, "-W", "ignore", str(FOLDER / "train.py"), *words]
    return subprocess.run(call, env=environment, capture_output=True, text=True)


class Train(unittest.TestCase):
    def test_tables_and_pictures(self):
        with tempfile.TemporaryDirectory() as folder:
            words = ("--steps", "3", "--seeds", "2", "--jobs", "1", "--heads", "learned8", "linear", "softmax")
            done = train("recall", "text", "--folder", folder, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            for task, heads, asked in (("recall", 3, len(Recall.sizes)), ("text", 2, 1)):
                lines = Path(folder, f"training-{task}.tsv").read_text().splitlines()
                self.assertEqual(lines[1].split("\t"), ["head", "D", "of", "step", "seed_0", "seed_1"])
                self.assertEqual(len(lines), 2 + heads * 3 * asked)
                for line in lines[2:]:
                    self.assertTrue(all(float(value) >= 0 for value in line.split("\t")[4:]), line)
                root = ElementTree.parse(Path(folder, f"training-{task}.svg")).getroot()
                curves = [x for x in root if x.tag.endswith("polyline")]
                self.assertEqual([len(x.get("points").split()) for x in curves], [3] * heads)

    def test_heads_that_are_not_there(self):
        done = train("recall", "--heads", "quadratic")
        self.assertEqual(done.returncode, 2)
        self.assertIn("recall has none of these heads, but linear, mixed,", done.stderr)

    def test_questions_of_recall_have_the_answers_that_were_given(self):
        task = Recall()
        x, y = task.batch(torch.Generator().manual_seed(1), 16)
        self.assertEqual((x.shape, y.shape), ((32, 32, 2), (32, 32)))
        for tokens, answers in zip(x.tolist(), y.tolist()):
            given = dict(tokens[:16])
            self.assertEqual(answers[:16], 16 * [NOT_ASKED])
            for (key, nothing), answer in zip(tokens[16:], answers[16:]):
                self.assertEqual((given.pop(key), nothing), (task.keys + answer, task.tokens - 1))

    def test_held_out_text_is_not_learned(self):
        task = Text()
        self.assertEqual(len(task.kept), (len(task.kept) + len(task.learned)) // 10)
        learned = {bytes(row) for row in task.learned.tolist()}
        self.assertFalse(learned & {bytes(row) for row in task.kept.tolist()})


if __name__ == "__main__":
    unittest.main()
