"""Run the tests of the package and end with CMocka's summing lines, which tools/run-tests.sh adds up.

python3 tests/python/run.py [PATTERN ...]     of files: test_*.py, test_torch*.py
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(*patterns: str) -> int:
    sys.path.insert(0, str(HERE))
    suite = unittest.TestSuite()
    for pattern in patterns or ("test_*.py",):
        suite.addTests(unittest.TestLoader().discover(str(HERE), pattern=pattern, top_level_dir=str(HERE)))
    result = unittest.TextTestRunner(sys.stdout, verbosity=2).run(suite)
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"[  PASSED  ] {result.testsRun - failed - skipped} test(s).")
    if skipped:
        print(f"[  SKIPPED ] {skipped} test(s), listed below:")
        for test, reason in result.skipped:
            print(f"[  SKIPPED ] {test.id()}: {reason}")
    if failed:
        print(f"[  FAILED  ] {failed} test(s), listed below:")
        for test, _ in result.failures + result.errors:
            print(f"[  FAILED  ] {test.id()}")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
