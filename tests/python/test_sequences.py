"""Sequences of different lengths in one call, and states in pools: what calls of their own give."""

from __future__ import annotations

import unittest

from support import fpac, head, log_gates, np, numbers, operands, run_command, same_bits

LENGTHS = (5, 0, 300, 1, 129, 64, 0, 17)
TOTAL = sum(LENGTHS)
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
HEADS = ("plain", "mean", "gated", "full", "trained", "half", "turned", "counted", "windowed", "brain")


def call_of(name, query_heads=4):
    """A head, its arrays with tokens as one batch, and its weights."""
    mine = head(name)
    about = mine.explain()
    dtype = {"f16": "float16"}.get(about.dtype, "float32")
    if about.dtype == "bf16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    q, k, v = (array.astype(dtype) for array in operands(about, TOTAL, batch=1, query_heads=query_heads))
    if about.normalized:
        q, k = abs(q), abs(k)
    more = {}
    if about.gate:
        more["log_gate"] = log_gates(TOTAL, batch=1)
    if about.positions:
        more["positions"] = numbers(8, 1, TOTAL, about.positions)
    if about.key_mask:
        more["key_mask"] = numbers(9, 1, TOTAL) > -0.5
    return mine, (q, k, v), more


def weights_of(mine):
    """Matrices of the shapes that the library tells, or none."""
    shapes = {"trained": {"A": (2, 3, 8), "B": (5, 8)}, "turned": {"a": (2, 8, 2), "b": (2, 8), "c": (2, 8)}}
    shapes["counted"] = {"a": (2, 8, 1)}
    names = shapes.get(mine.name)
    return {n: abs(numbers(7, *s)) / 4 for n, s in names.items()} if names else None


def part(arrays, s):
    """Sequence s of arrays with tokens."""
    begin, end = OFFSETS[s], OFFSETS[s + 1]
    if isinstance(arrays, dict):
        return {name: array[:, begin:end] for name, array in arrays.items()}
    return tuple(array[:, begin:end] for array in arrays)


class Sequences(unittest.TestCase):
    def forms(self, mine):
        return ("parallel", "chunked") if mine.name == "full" else ("parallel", "chunked", "recurrent")

    def test_each_sequence_has_the_bits_of_a_call_of_its_own(self):
        for name in HEADS:
            try:
                mine, arrays, more = call_of(name)
            except ImportError:
                continue
            weights = weights_of(mine)
            for form in self.forms(mine):
                for dtype in ("int32", "int64"):
                    o, state = mine(
                        *arrays, weights=weights, form=form, return_state=True, cu_seqlens=OFFSETS.astype(dtype), **more
                    )
                    self.assertEqual(state.shape[0], len(LENGTHS))
                    for s in range(len(LENGTHS)):
                        own, left = mine(
                            *part(arrays, s), weights=weights, form=form, return_state=True, **part(more, s)
                        )
                        with self.subTest(head=name, form=form, sequence=s):
                            self.assertTrue(same_bits(np.ascontiguousarray(part((o,), s)[0]), own))
                            self.assertTrue(same_bits(state[s : s + 1], left))

    def test_states_begin_and_end_in_slots_of_a_pool(self):
        for name in ("plain", "mean", "gated", "half"):
            mine, arrays, more = call_of(name)
            count = len(LENGTHS)
            begin = np.array([3, 3, -1, 3, 6, 20, -1, 6], np.int32)
            end = np.array([0, 9, 4, -1, 11, 12, 13, 1], np.int32)
            pool = abs(mine.new_state(np.repeat(arrays[1][:, :1], 25, 0)) + 1) * 0.25
            pool = (pool * numbers(5, *pool.shape)).astype(pool.dtype)
            before = pool.copy()
            for form in self.forms(mine):
                pool[...] = before
                states = [before[i : i + 1] if i >= 0 else None for i in begin]
                o = mine(*arrays, state=pool, state_index=begin, form=form, cu_seqlens=OFFSETS.astype("int32"), **more)
                expected = [
                    mine(*part(arrays, s), state=states[s], form=form, return_state=True, **part(more, s))
                    for s in range(count)
                ]
                for s in range(count):
                    self.assertTrue(same_bits(np.ascontiguousarray(part((o,), s)[0]), expected[s][0]))
                self.assertTrue(same_bits(pool, before))
            mine.step(*arrays, pool, cu_seqlens=OFFSETS.astype("int32"), state_index=begin, state_out_index=end, **more)
            for slot in range(len(pool)):
                if slot in end:
                    s = list(end).index(slot)
                    self.assertTrue(same_bits(pool[slot : slot + 1], expected[s][1]), (name, slot, s))
                else:
                    self.assertTrue(same_bits(pool[slot], before[slot]))

    def test_sequences_of_one_length_take_slots_too(self):
        mine = head("plain")
        q, k, v = operands(mine.explain(), 3, batch=4)
        pool = numbers(5, 9, 2, mine.explain().state_elements)
        index = np.array([8, 1, -1, 4], np.int32)
        given = pool[index] * (index >= 0)[:, None, None].astype("float32")
        expected, left = mine(q, k, v, state=given, form="recurrent", return_state=True)
        before = pool.copy()
        o = mine.step(q, k, v, pool, state_index=index)
        self.assertTrue(same_bits(o, expected))
        for s, slot in enumerate(index):
            if slot >= 0:
                self.assertTrue(same_bits(pool[slot], left[s]))
        others = [i for i in range(9) if i not in index]
        self.assertTrue(same_bits(pool[others], before[others]))
        wide = np.zeros((9, 3, *pool.shape[1:]), "float32")  # a slot's place has a stride of its own
        wide[:, 1] = before
        self.assertTrue(same_bits(mine.step(q, k, v, wide[:, 1], state_index=index), expected))
        self.assertTrue(same_bits(wide[:, 1], pool))

    def test_recent_tokens_go_with_slots(self):
        mine = head("plain")
        q, k, v = operands(mine.explain(), 5, batch=3)
        pool = numbers(5, 6, 2, mine.explain().state_elements)
        index = np.array([5, 0, 5], np.int32)
        o = mine(q[:, 4:], k, v, state=pool, recent=4, state_index=index)
        self.assertTrue(same_bits(o, mine(q[:, 4:], k, v, state=pool[index], recent=4)))

    def test_recent_tokens_of_different_numbers_are_packed(self):
        for name in ("plain", "gated", "turned"):
            mine, (q, k, v), more = call_of(name)
            weights, count = weights_of(mine), len(LENGTHS)
            state = numbers(6, count, 2, mine.explain().state_elements)
            q = np.ascontiguousarray(q[:, np.maximum(OFFSETS[1:] - 1, 0)])
            packed = {"recent": max(LENGTHS) - 1, "cu_seqlens": OFFSETS.astype("int32")}
            o = mine(q, k, v, weights=weights, state=state, **packed, **more)
            self.assertEqual(o.shape[1], count)
            for s in range(count):
                if LENGTHS[s]:
                    own = mine(
                        q[:, s : s + 1],
                        *part((k, v), s),
                        weights=weights,
                        state=state[s : s + 1],
                        recent=LENGTHS[s] - 1,
                        form="recurrent",
                        **part(more, s),
                    )
                    with self.subTest(head=name, sequence=s):
                        self.assertTrue(same_bits(np.ascontiguousarray(o[:, s : s + 1]), own))

    def test_a_window_goes_on_with_its_tokens_again(self):
        mine, (q, k, v), _ = call_of("windowed")
        window, cuts = mine.explain().window, [min(n, 40 + s) for s, n in enumerate(LENGTHS)]
        whole = mine(q, k, v, cu_seqlens=OFFSETS)
        first, again = [], []
        for s, cut in enumerate(cuts):
            begin = OFFSETS[s]
            first.append(np.arange(begin, begin + cut))
            again.append(np.arange(begin + max(cut - window + 1, 0), OFFSETS[s + 1]))

        def offsets(rows):
            return np.cumsum([0] + [len(r) for r in rows])

        def take(x, rows):
            return np.ascontiguousarray(x[:, np.concatenate(rows)])

        _, state = mine(*(take(x, first) for x in (q, k, v)), return_state=True, cu_seqlens=offsets(first))
        o = mine(*(take(x, again) for x in (q, k, v)), state=state, cu_seqlens=offsets(again))
        for s, place in enumerate(offsets(again)[:-1]):
            fresh = len(again[s]) - (LENGTHS[s] - cuts[s])
            self.assertTrue(
                np.allclose(
                    o[:, place + fresh : place + len(again[s])],
                    whole[:, OFFSETS[s] + cuts[s] : OFFSETS[s + 1]],
                    rtol=1e-4,
                    atol=1e-5,
                )
            )

    def test_keys_alone_enter_slots(self):
        mine, (_, k, v), _ = call_of("plain")
        pool = np.zeros((20, 2, mine.explain().state_elements), "float32")
        index = np.arange(len(LENGTHS), dtype=np.int32) + 9
        mine.update(k, v, pool, cu_seqlens=OFFSETS, state_index=index)
        for s in range(len(LENGTHS)):
            own = np.zeros_like(pool[:1])
            if LENGTHS[s]:
                mine.update(*part((k, v), s), own)
            self.assertTrue(same_bits(pool[index[s]], own[0]))
        self.assertFalse(pool[:9].any())

    def test_the_command_gives_the_same_bits(self):
        mine, (q, k, v), _ = call_of("plain")
        count = len(LENGTHS)
        pool = numbers(5, 12, 2, mine.explain().features, mine.explain().dv)
        index = np.array([3, 3, -1, 3, 6, 11, -1, 6], np.int32)
        o, state = run_command("plain", q, k, v, form="chunked", state=pool, cu_seqlens=OFFSETS, state_index=index)
        expected, left = mine(
            q, k, v, state=pool, state_index=index, cu_seqlens=OFFSETS, form="chunked", return_state=True
        )
        self.assertTrue(same_bits(o, expected))
        self.assertEqual(state.shape[0], count)
        self.assertTrue(same_bits(state, left))

    def test_max_length_is_a_bound(self):
        mine, arrays, _ = call_of("plain")
        expected = mine(*arrays, cu_seqlens=OFFSETS, form="chunked")
        for most in (max(LENGTHS), TOTAL, 10 * TOTAL):
            self.assertTrue(same_bits(mine(*arrays, cu_seqlens=OFFSETS, max_length=most, form="chunked"), expected))

    def test_a_prompt_in_pieces_of_whole_chunks_has_the_bits_of_one_pass(self):
        for name in ("plain", "mean", "gated", "half", "trained"):
            mine = head(name)
            chunk, weights = mine.explain().chunk, weights_of(mine)
            length = 5 * chunk + 7
            dtype = "float16" if name == "half" else "float32"
            q, k, v = (abs(array) / 2 for array in operands(mine.explain(), length, batch=1, dtype=dtype))
            gates = log_gates(length, batch=1) if name == "gated" else None
            whole, left = mine(q, k, v, gates, weights=weights, form="chunked", return_state=True)
            state, pieces = None, []
            for begin, end in ((0, 2 * chunk), (2 * chunk, 3 * chunk), (3 * chunk, length)):
                gate = None if gates is None else gates[:, begin:end]
                o, state = mine(
                    q[:, begin:end], k[:, begin:end], v[:, begin:end], gate,
                    weights=weights, state=state, form="chunked", return_state=True,
                )  # fmt: skip
                pieces.append(o)
            with self.subTest(head=name):
                self.assertTrue(same_bits(np.concatenate(pieces, 1), whole))
                self.assertTrue(same_bits(state, left))


class Refusals(unittest.TestCase):
    def refuse(self, words, *, offsets=OFFSETS, **more):
        mine, arrays, _ = call_of("plain")
        with self.assertRaises(fpac.InvalidError) as caught:
            mine(*arrays, cu_seqlens=np.asarray(offsets, "int32"), **more)
        self.assertIn(words, str(caught.exception))

    def test_offsets_that_go_back_or_leave_the_tokens(self):
        self.refuse("[2] is 3, less than 5", offsets=[0, 5, 3])
        self.refuse("[0] is -1, less than 0", offsets=[-1, 5])
        self.refuse(f"[1] is {TOTAL + 1}, but there are {TOTAL} tokens", offsets=[0, TOTAL + 1])
        self.refuse("is empty, but S + 1 numbers", offsets=[])
        self.refuse("sequence 2 has 300 tokens, but max_length is 299", max_length=299)

    def test_indices_of_no_slot(self):
        pool = np.zeros((4, 2, head("plain").explain().state_elements), "float32")
        index = np.arange(len(LENGTHS), dtype=np.int32) % 4
        for wrong in (4, -2):
            index[3] = wrong
            self.refuse(f"[3] is {wrong}, but state_in has 4 slots", state=pool, state_index=index)
        self.refuse("axis 0 has 3 numbers", state=pool, state_index=index[:3])
        self.refuse("there is no state_in", state_index=index)

    def test_two_sequences_that_leave_their_states_in_one_slot(self):
        mine = head("plain")
        q, k, v = operands(mine.explain(), 1, batch=3)
        pool = np.zeros((4, 2, mine.explain().state_elements), "float32")
        for begin, end, words in (
            ((0, 1, 2), (3, 1, 3), "[2] is 3, but another sequence writes its state"),
            ((0, 1, 2), (1, 3, -1), "has slot 1, from which sequence 1 starts"),
        ):
            with self.assertRaises(fpac.InvalidError) as caught:
                mine.step(q, k, v, pool, state_index=np.array(begin, "int32"), state_out_index=np.array(end, "int32"))
            self.assertIn(words, str(caught.exception))

    def test_recent_tokens_and_offsets(self):
        mine, arrays, _ = call_of("windowed")
        with self.assertRaises(fpac.InvalidError):
            mine(arrays[0][:, 1:], *arrays[1:], recent=1, cu_seqlens=OFFSETS)

    def test_indices_of_another_dtype(self):
        mine, arrays, _ = call_of("plain")
        with self.assertRaises(fpac.ArgumentTypeError):
            mine(*arrays, cu_seqlens=OFFSETS.astype("float32"))


if __name__ == "__main__":
    unittest.main()
