"""Cases of bench/peers share the time: none that hangs, fails or is slow at first costs another its lines."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

from support import TOP

# A script as those of bench/peers are, with cases that measure nothing. Its folder is where they leave marks.
SCRIPT = f"""
import os, subprocess, sys, time
sys.path.insert(0, {str(TOP / "bench/peers")!r})
from shares import Turn, end_with_the_parent, share_out

def row(case, length):
    print("fake", "1.0", case, length, 1, 16, 0.5, 1.0, sep="\\t", flush=True)

def measure(case, lengths):
    end_with_the_parent()
    print("# fake 1.0", flush=True)
    for length in lengths:
        if case == "hangs" and length != "65536":
            child = subprocess.Popen(["sleep", "60"])
            with open("child", "w") as file:
                file.write(str(child.pid))
            time.sleep(60)
        if case == "tunes" and not os.path.exists("tuned"):
            open("tuned", "w").close()
            time.sleep(60)
        if case == "dies":
            os._exit(7)
        if case == "refuses":
            print(f"skipped\\tfake\\t{{case}}, length {{length}}, batch 1\\tnot for me", flush=True)
        elif case == "no GPU":
            print("skipped\\tfake\\tall\\ttorch sees no GPU", flush=True)
            return
        else:
            row(case, length)

seconds, *cases = sys.argv[1:]
if seconds == "case":
    measure(cases[0], cases[1].split(","))
else:
    share_out(
        [Turn("fake", case, [65536, 4096]) for case in cases],
        lambda case, lengths: [sys.executable, __file__, "case", case, ",".join(map(str, lengths))],
        float(seconds),
    )
"""


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


class Shares(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "fake.py").write_text(textwrap.dedent(SCRIPT))

    def start(self, seconds, *cases):
        command = [sys.executable, self.folder / "fake.py", str(seconds), *cases]
        return subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)

    def run_cases(self, seconds, *cases):
        process = self.start(seconds, *cases)
        lines, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        return lines.splitlines()

    def measured(self, lines):
        rows = [line.split("\t") for line in lines]
        return [(row[2], int(row[3])) for row in rows if row[0] == "fake"]

    def test_cases_that_hang_tune_and_die_cost_the_others_nothing(self):
        begin = time.monotonic()
        lines = self.run_cases(6, "hangs", "tunes", "dies", "refuses", "quick")
        self.assertLess(time.monotonic() - begin, 15)
        both = (65536, 4096)
        expected = [("hangs", 65536), *(("quick", length) for length in both), *(("tunes", length) for length in both)]
        self.assertEqual(self.measured(lines), expected)  # what tuned in its first turn is measured in its second
        told = [line.split("\t")[2:] for line in lines if line.startswith("skipped")]
        self.assertEqual(told[0], ["dies, length 65536, 4096", "its process ended with status 7"])
        self.assertEqual(told[1:3], [[f"refuses, length {length}, batch 1", "not for me"] for length in both])
        self.assertEqual(told[3:], [["hangs, length 4096", "did not end within its shares of the 6 s of --seconds"]])
        self.assertEqual(sum(line == "# fake 1.0" for line in lines), 1)
        self.assertFalse(is_alive((self.folder / "child").read_text()))  # with all that it started

    def test_without_a_gpu_the_first_case_says_so_for_all(self):
        lines = self.run_cases(20, "no GPU", "quick")
        self.assertEqual(lines[1:], ["# fake 1.0", "skipped\tfake\tall\ttorch sees no GPU"])

    def test_a_package_that_is_not_installed_is_named_once(self):
        sys.path.insert(0, str(TOP / "bench/peers"))
        from measure import Peer

        peer = object.__new__(Peer)  # without torch
        peer.name = "fake"
        with contextlib.redirect_stdout(io.StringIO()) as told, contextlib.redirect_stderr(io.StringIO()):
            self.assertIsNone(peer.find("softmax", "no-such-package", "nor-this-one"))
        self.assertEqual(told.getvalue(), "skipped\tfake\tsoftmax\tno-such-package or nor-this-one is not installed\n")

    def test_one_that_is_stopped_leaves_what_it_wrote_and_no_process(self):
        for how in (signal.SIGTERM, signal.SIGKILL):
            process = self.start(60, "quick", "hangs")
            lines = [process.stdout.readline() for _ in range(5)]  # of comments and rows; then it hangs
            child = self.folder / "child"
            while not child.exists() or not child.read_text():
                time.sleep(0.01)
            process.send_signal(how)
            process.wait(10)
            process.stdout.close()
            self.assertEqual(
                self.measured(line.rstrip("\n") for line in lines)[:2], [("quick", 65536), ("quick", 4096)]
            )
            if how == signal.SIGTERM:
                self.assertFalse(is_alive(child.read_text()))
            else:  # nobody is left to end what the case itself started
                os.kill(int(child.read_text()), signal.SIGKILL)
            child.unlink()


if __name__ == "__main__":
    unittest.main()
