"""Heads as objects: opening, what they tell, threads, forks, the end."""

from __future__ import annotations

import copy
import gc
import os
import tempfile
import threading
import unittest
import weakref
from pathlib import Path

from support import COMMAND, SPEC, fpac, head, operands, same_bits


class Opening(unittest.TestCase):
    def test_a_file_and_its_text_give_the_same_head(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tests.lua"
            path.write_text(SPEC)
            mine, same = fpac.load(path, "mean"), fpac.load(str(path), name="mean")
        arrays = operands(mine.explain(), 20)
        self.assertTrue(same_bits(mine(*arrays), head("mean")(*arrays)))
        self.assertTrue(same_bits(same(*arrays), head("mean")(*arrays)))

    def test_the_only_head_of_a_text_needs_no_name(self):
        text = "return head { name = 'only', d = 8, dv = 8, terms = linear {} }"
        self.assertEqual(fpac.head(text).name, "only")

    def test_a_second_opening_takes_the_cache(self):
        with tempfile.TemporaryDirectory() as cache:
            os.chmod(cache, 0o700)
            first = fpac.head(SPEC, "plain", cache_dir=cache)
            second = fpac.head(SPEC, "plain", cache_dir=Path(cache))
        self.assertEqual([first.explain().from_cache, second.explain().from_cache], [False, True])

    def test_what_is_done_is_logged(self):
        lines = []
        fpac.head(SPEC, "plain", cache_dir="", log=lines.append)
        self.assertTrue(any("verified" in line for line in lines), lines)

    def test_a_bundle_is_opened_without_a_compiler(self):
        import subprocess

        with tempfile.TemporaryDirectory() as folder:
            spec = Path(folder) / "tests.lua"
            spec.write_text(SPEC)
            words = [COMMAND, "gen", spec, "--head", "mean", "-o", Path(folder) / "bundle", "--target", "c", "--object"]
            subprocess.run(words, check=True, capture_output=True)
            mine = fpac.load_bundle(Path(folder) / "bundle", "mean", cache_dir="")
        arrays = operands(mine.explain(), 20)
        self.assertTrue(same_bits(mine(*arrays), head("mean")(*arrays)))

    def test_verify_compiles_afresh_and_tells_the_largest_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tests.lua"
            path.write_text(SPEC)
            verdict = fpac.verify(path, "plain", "c")
        self.assertEqual(verdict.name, "plain")
        for form in ("parallel", "chunked", "recurrent"):
            self.assertIn(form, verdict.text)
        self.assertIn(verdict.target, str(verdict))

    def test_what_a_head_tells(self):
        about = head("mean").explain()
        self.assertEqual((about.name, about.d, about.dv, about.dtype), ("mean", 8, 8, "f32"))
        self.assertEqual(about.features, head("mean").features)
        self.assertEqual(about.state_elements, about.features * (about.dv + 1))
        self.assertEqual(about.state_bytes, 4 * about.state_elements)
        self.assertTrue(about.causal and about.normalized and not about.gate)
        self.assertEqual(list(about.flop), ["parallel", "chunked", "recurrent"])
        self.assertTrue(head("gated").explain().gate)
        self.assertFalse(head("full").explain().causal)
        self.assertRegex(repr(head("mean")), r"<fpac head mean: d 8, dv 8, D \d+, c:\w+>")

    def test_the_form_that_a_call_takes(self):
        mine = head("mean")
        crossover = mine.explain().crossover
        self.assertEqual(mine.choose_form(crossover - 1), "parallel")
        self.assertEqual(mine.choose_form(crossover), "chunked")
        self.assertEqual(mine.choose_form(1, with_state=True), "recurrent")


class Life(unittest.TestCase):
    def test_threads_share_a_head(self):
        mine = head("mean")
        lengths = [1, 30, 31, 200] * 4
        expected = {length: mine(*operands(mine.explain(), length)) for length in lengths}
        wrong, begin = [], threading.Barrier(len(lengths))

        def work(length):
            arrays = operands(mine.explain(), length)
            begin.wait()
            for _ in range(20):
                if not same_bits(mine(*arrays), expected[length]):
                    wrong.append(length)

        threads = [threading.Thread(target=work, args=(length,)) for length in lengths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_head_that_is_closed_while_it_computes_ends_its_calls_first(self):
        for _ in range(10):
            mine = fpac.head(SPEC, "mean")
            arrays = operands(mine.explain(), 400)
            expected, results = mine(*arrays), []

            def work(mine=mine, arrays=arrays, results=results):
                try:
                    while True:
                        results.append(mine(*arrays))
                except fpac.InvalidError as error:
                    results.append(str(error))

            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            mine.close()
            for thread in threads:
                thread.join()
            self.assertEqual(mine._calls.free, {}, "nothing holds the kernel any more")
            texts = [result for result in results if isinstance(result, str)]
            self.assertEqual(texts, ["mean: is closed: open the head again"] * 2)
            self.assertTrue(all(same_bits(r, expected) for r in results if not isinstance(r, str)))

    def test_a_head_that_nobody_holds_is_unloaded(self):
        from fpac import library

        closed, real = [], library.library().fpa_close

        mine = fpac.head(SPEC, "mean")
        kernel = mine._calls.kernel()
        kernel._close = lambda address: (closed.append(address), real(address))
        address, gone = kernel.address, weakref.ref(mine)
        arrays = operands(mine.explain(), 5)
        o, state = mine(*arrays, return_state=True)
        del kernel
        self.assertEqual(closed, [])
        del mine
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(closed, [address])
        expected, same = head("mean")(*arrays, return_state=True)
        self.assertTrue(same_bits(o, expected) and same_bits(state, same), "results outlive the head")

    def test_results_are_memory_of_their_own(self):
        mine = head("mean")
        arrays = operands(mine.explain(), 20)
        first = mine(*arrays)
        kept = first.copy()
        mine(*(2 * array for array in arrays))
        self.assertTrue(same_bits(first, kept))

    def test_many_shapes_do_not_pile_up(self):
        from fpac import call

        mine = fpac.head(SPEC, "plain")
        for length in range(1, 2 * call._MOST_PREPARED):
            mine(*operands(mine.explain(), length, batch=1, heads=1))
        self.assertLessEqual(len(mine._calls.free), call._MOST_PREPARED)

    def test_copies_share_the_kernel(self):
        mine = head("mean")
        self.assertIs(copy.copy(mine), mine)
        self.assertIs(copy.deepcopy({"head": mine})["head"], mine)

    def test_a_forked_child_computes_the_same(self):
        mine = head("mean")
        arrays = operands(mine.explain(), 300)
        expected = mine(*arrays)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                opened = fpac.head(SPEC, "mean")
                status = 0 if same_bits(mine(*arrays), expected) and same_bits(opened(*arrays), expected) else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertTrue(same_bits(mine(*arrays), expected))

    def test_a_workspace_grows_with_the_threads(self):
        """What a prepared call has allocated is too small when OpenMP has more threads later on."""
        mine = fpac.head(SPEC, "mean")
        arrays = operands(mine.explain(), 300)
        expected = mine(*arrays, form="chunked")
        (prepared,) = next(free for key, free in mine._calls.free.items() if key[0] == 1)
        self.assertGreater(prepared.size, 0)
        prepared.size = 1
        self.assertTrue(same_bits(mine(*arrays, form="chunked"), expected))
        self.assertGreater(prepared.size, 1)

    def test_a_thread_keeps_one_workspace_and_no_large_one(self):
        from fpac import call

        mine, kept = fpac.head(SPEC, "mean"), []
        for length, batch in ((300, 1), (2000, 1), (300, 1), (4000, 8)):
            arrays = operands(mine.explain(), length, batch)
            self.assertTrue(same_bits(mine(*arrays, form="chunked"), mine(*arrays, form="chunked")))
            kept.append(call.kept_workspace.size)
        self.assertEqual(kept, sorted(kept), "another call's is not given up for a smaller one")
        self.assertTrue(0 < kept[-1] <= call._MOST_KEPT)


if __name__ == "__main__":
    unittest.main()
