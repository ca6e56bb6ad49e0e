"""What docs/python.md shows runs, and says what it says there."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import tempfile
import unittest

from support import COMMAND, TOP

try:
    import torch  # noqa: F401

    HAS_TORCH = True
except ImportError:
    HAS_TORCH = False

PAGE = TOP / "docs" / "python.md"


class Page(unittest.TestCase):
    def setUp(self):
        folder, before = tempfile.TemporaryDirectory(), os.getcwd()
        self.addCleanup(folder.cleanup)
        os.chdir(folder.name)
        self.addCleanup(os.chdir, before)
        subprocess.run([COMMAND, "new", "mine"], check=True, capture_output=True)

    def sections(self):
        """The page's sections; those that need torch only where it is."""
        parts = re.split(r"(?m)^(?=## )", PAGE.read_text())
        return [part for part in parts if HAS_TORCH or "torch" not in "".join(re.findall(r"(?m)^>>> .*", part))]

    def test_the_examples(self):
        globals_of_page: dict = {}
        ran = 0
        for section in self.sections():
            name = section.splitlines()[0]
            test = doctest.DocTestParser().get_doctest(section, globals_of_page, name, str(PAGE), 0)
            runner, said = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE), []
            runner.run(test, out=said.append, clear_globs=False)
            self.assertEqual(runner.failures, 0, f"{name}: {''.join(said)}")
            globals_of_page.update(test.globs)
            ran += runner.tries
        self.assertGreater(ran, 15)

    def test_the_readme_s_lines(self):
        (lines,) = re.findall(r"(?s)```python\n(.*?)```", (TOP / "README.md").read_text())
        names: dict = {}
        exec(lines, names)
        self.assertEqual((names["o"].shape, names["state"].shape[:2]), ((1, 1, 2, 64), (1, 2)))

    def test_every_exception_is_in_the_table(self):
        import fpac

        page = PAGE.read_text()
        for name in fpac.__all__:
            value = getattr(fpac, name)
            if isinstance(value, type) and issubclass(value, fpac.Error) and value is not fpac.Error:
                self.assertRegex(page, rf"(?m)^\| `{name}` \| `{value.__mro__[2].__name__}` \|")


if __name__ == "__main__":
    unittest.main()
