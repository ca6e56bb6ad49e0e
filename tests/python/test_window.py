"""Heads with a window: the formula, whole and handed over token by token; torch."""

from __future__ import annotations

import unittest

from support import fpac, head, np, operands, run_command, same_bits

try:
    import torch
except ImportError:
    torch = None

LENGTH, WINDOW = 70, 9


def expected(q, k, v, scale):
    """Softmax over the newest keys, 1 + s + s^2/2 of the older ones, in double precision."""
    score = scale * np.einsum("blhd,bmhd->bhlm", q.astype("float64"), k.astype("float64"))
    distance = np.arange(LENGTH)[:, None] - np.arange(LENGTH)
    weight = np.where(distance < WINDOW, np.exp(score), 1 + score + score**2 / 2) * (distance >= 0)
    return np.einsum("bhlm,bmhd->blhd", weight / (weight.sum(-1, keepdims=True) + 1e-6), v.astype("float64"))


class Window(unittest.TestCase):
    def arrays(self):
        mine = head("windowed")
        self.assertEqual(mine.explain().window, WINDOW)
        return mine, operands(mine.explain(), LENGTH)

    def test_the_formula_holds_in_every_form(self):
        mine, (q, k, v) = self.arrays()
        for form in ("parallel", "chunked", "recurrent", None):
            np.testing.assert_allclose(mine(q, k, v, form=form), expected(q, k, v, 0.5), rtol=1e-4, atol=1e-4)

    def test_a_prompt_goes_on_token_by_token(self):
        mine, (q, k, v) = self.arrays()
        whole = expected(q, k, v, 0.5)
        o, state = mine(q[:, :30], k[:, :30], v[:, :30], return_state=True)
        np.testing.assert_allclose(o, whole[:, :30], rtol=1e-4, atol=1e-4)
        for t in range(30, LENGTH):
            seen = slice(t - WINDOW + 1, t + 1)
            o = mine.step(q[:, t : t + 1], k[:, seen], v[:, seen], state, recent=WINDOW - 1)
            np.testing.assert_allclose(o[:, 0], whole[:, t], rtol=1e-4, atol=1e-4)

    def test_fpac_run_takes_the_window_before_q(self):
        mine, (q, k, v) = self.arrays()
        for cut in (4, 30):
            before = max(cut - WINDOW + 1, 0)
            first, state = run_command("windowed", q[:, :cut], k[:, :cut], v[:, :cut])
            last, _ = run_command("windowed", q[:, cut:], k[:, before:], v[:, before:], state=state)
            both = np.concatenate([first, last], 1)
            np.testing.assert_allclose(both, expected(q, k, v, 0.5), rtol=1e-4, atol=1e-4)
        with self.assertRaisesRegex(AssertionError, "--state-in: lacks the window's keys: k and v need the 8 tokens"):
            run_command("windowed", q[:, cut:], k[:, cut:], v[:, cut:], state=state)

    def test_tokens_that_are_not_there_are_told(self):
        mine, (q, k, v) = self.arrays()
        with self.assertRaisesRegex(fpac.InvalidError, "q's tokens and the recent ones are 73"):
            mine(q, k, v, recent=3)

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_torch_gives_the_same_bits(self):
        mine, (q, k, v) = self.arrays()
        state, there = mine.new_state(k), mine.new_state(torch.from_numpy(k))
        o = mine.step(q[:, 3:4], k[:, :4], v[:, :4], state, recent=3)
        same = mine.step(*(torch.from_numpy(array) for array in (q[:, 3:4], k[:, :4], v[:, :4])), there, recent=3)
        self.assertTrue(same_bits(o, same.numpy()))
        self.assertTrue(same_bits(state, there.numpy()))


if __name__ == "__main__":
    unittest.main()
