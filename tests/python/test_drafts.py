"""Drafts: several tokens a step against a state that is only read, and how many of them it takes in."""

from __future__ import annotations

import unittest

from support import fpac, head, log_gates, np, operands

TOKENS, DRAFT, BATCH = 23, 5, 3


class Drafts(unittest.TestCase):
    def problem(self, name):
        mine = head(name)
        about = mine.explain()
        q, k, v = operands(about, TOKENS, batch=BATCH, query_heads=4)
        if about.normalized:
            q, k = abs(q), abs(k)
        gates = log_gates(TOKENS, batch=BATCH) if about.gate else None
        return mine, (q, k, v, gates)

    def part(self, arrays, at):
        """DRAFT tokens of each sequence, from a place of its own on; behind the end there are none."""
        places = np.minimum(np.arange(DRAFT)[None, :] + at[:, None], TOKENS - 1)
        return [None if array is None else array[np.arange(BATCH)[:, None], places] for array in arrays]

    def test_decoding_by_drafts_is_one_forward(self):
        for name in ("plain", "mean", "gated"):
            mine, arrays = self.problem(name)
            expected, final = mine(*arrays, form="recurrent", return_state=True)
            for fused in (False, True):
                state, at, before = mine.new_state(arrays[1]), np.zeros(BATCH, int), None
                o = np.full_like(expected, np.nan)
                for turn in range(100):
                    q, k, v, gates = self.part(arrays, at)
                    if fused or before is None:
                        got = mine.draft(q, k, v, state, gates, accepted=before)
                    else:
                        mine.accept(before.k, before.v, state, before.count, before.log_gate)
                        got = mine.draft(q, k, v, state, gates)
                    for b in range(BATCH):
                        there = min(DRAFT, TOKENS - at[b])
                        o[b, at[b] : at[b] + there] = got[b, :there]
                    count = np.minimum((np.arange(BATCH) + turn) % (DRAFT + 1), TOKENS - at).astype("int32")
                    before, at = fpac.Accepted(k, v, count, gates), at + count
                    if (at == TOKENS).all():
                        break
                mine.accept(*before[:2], state, before.count, before.log_gate)
                with self.subTest(head=name, fused=fused):
                    np.testing.assert_allclose(o, expected, rtol=2e-4, atol=2e-4)
                    np.testing.assert_allclose(state, final, rtol=2e-4, atol=2e-4)

    def test_states_are_in_slots_of_a_pool(self):
        mine, arrays = self.problem("plain")
        q, k, v, _ = self.part(arrays, np.zeros(BATCH, int))
        pool = np.zeros((5, 2, mine.explain().state_elements), "float32")
        slots, counts = np.array([4, 0, 2], "int32"), np.array([5, 0, 3], "int32")
        mine.accept(k, v, pool, counts, state_index=slots)
        for b in range(BATCH):
            own = mine.new_state(k[b : b + 1])
            mine.update(k[b : b + 1, : counts[b]], v[b : b + 1, : counts[b]], own)
            np.testing.assert_allclose(pool[slots[b]], own[0], rtol=1e-5, atol=1e-5)
        o = mine.draft(q, k, v, pool, state_index=slots)
        np.testing.assert_allclose(o, mine(q, k, v, state=pool[slots], form="chunked"), rtol=1e-5, atol=1e-5)

    def test_mistakes_are_named(self):
        mine, arrays = self.problem("plain")
        q, k, v, _ = self.part(arrays, np.zeros(BATCH, int))
        state = mine.new_state(k)
        with self.assertRaisesRegex(fpac.InvalidError, r"accepted.count: \[1\] is 6, but there are 5 tokens"):
            mine.accept(k, v, state, np.array([5, 6, 0], "int32"))
        with self.assertRaisesRegex(fpac.ArgumentTypeError, "count: is int64"):
            mine.accept(k, v, state, np.array([5, 5, 0]))
        with self.assertRaisesRegex(fpac.InvalidError, "q: has 17 tokens, but a draft has 1 to 16"):
            long = [array[:, :17] for array in arrays[:3]]
            mine.draft(*long, state)
        with self.assertRaisesRegex(fpac.UnsupportedError, "has a window"):
            windowed = head("windowed")
            wide = operands(windowed.explain(), 3)
            windowed.draft(*wide, windowed.new_state(wide[1]))


if __name__ == "__main__":
    unittest.main()
