"""What a head computes from NumPy's arrays: the bits of `fpac run`, the values of the formula."""

from __future__ import annotations

import unittest

from support import formula, head, log_gates, np, numbers, operands, run_command, same_bits


class Results(unittest.TestCase):
    def check_command(self, name, length, form=None, **more):
        """The same bits as the command's, of the output and of the state."""
        mine = head(name)
        q, k, v = operands(mine.explain(), length)
        o, state = mine(q, k, v, return_state=True, form=form, **more)
        expected, expected_state = run_command(name, q, k, v, form=form, **more)
        self.assertTrue(same_bits(o, expected), f"{name} {length} {form}: o")
        self.assertTrue(same_bits(state, expected_state.reshape(state.shape)), f"{name} {length} {form}: state")

    def test_every_form_gives_the_bits_of_fpac_run(self):
        for form in ("parallel", "chunked", "recurrent", None):
            self.check_command("mean", 37, form)

    def test_lengths_around_a_chunk_give_the_bits_of_fpac_run(self):
        chunk = head("plain").explain().chunk
        for length in (1, chunk - 1, chunk, chunk + 1, 2 * chunk + 5):
            self.check_command("plain", length, "chunked")

    def test_gates_give_the_bits_of_fpac_run(self):
        self.check_command("gated", 50, log_gate=log_gates(50))

    def test_run_time_matrices_give_the_bits_of_fpac_run(self):
        self.check_command("trained", 20, weights={"A": numbers(5, 2, 3, 8), "B": numbers(6, 5, 8)})
        self.check_command("weighted", 20, weights={"g": numbers(7, 2, 8)})

    def test_half_precision_gives_the_bits_of_fpac_run(self):
        mine = head("half")
        q, k, v = operands(mine.explain(), 40, dtype="float16")
        o, state = mine(q, k, v, return_state=True)
        expected, expected_state = run_command("half", *(array.astype("float32") for array in (q, k, v)))
        self.assertEqual((o.dtype, state.dtype), (np.float16, np.float32))
        self.assertTrue(same_bits(o.astype("float32"), expected.astype("float32")))
        self.assertTrue(same_bits(state, expected_state.reshape(state.shape)))

    def test_the_formula_holds(self):
        for name, length, gate in (("plain", 30, None), ("mean", 200, None), ("gated", 60, log_gates(60))):
            mine = head(name)
            q, k, v = operands(mine.explain(), length)
            expected = formula(mine.explain(), q, k, v, gate)
            np.testing.assert_allclose(mine(q, k, v, log_gate=gate), expected, rtol=1e-3, atol=1e-3)

    def test_a_head_that_sees_everything_gives_the_formula(self):
        mine = head("full")
        q, k, v = operands(mine.explain(), 30)
        np.testing.assert_allclose(mine(q, k, v), formula(mine.explain(), q, k, v, causal=False), rtol=1e-3, atol=1e-3)

    def test_no_tokens_give_no_output_and_the_state_as_it_was(self):
        mine = head("mean")
        q, k, v = operands(mine.explain(), 0)
        before = numbers(8, 2, 2, mine.explain().state_elements)
        o, state = mine(q, k, v, state=before, return_state=True)
        self.assertEqual(o.shape, (2, 0, 2, 8))
        self.assertTrue(same_bits(state, before))
        o, state = mine(q, k, v, return_state=True)
        self.assertFalse(state.any())

    def test_a_sequence_may_be_split_anywhere(self):
        mine = head("mean")
        q, k, v = operands(mine.explain(), 150)
        whole, last = mine(q, k, v, return_state=True)
        for at in (1, mine.explain().chunk, 149):
            first, state = mine(q[:, :at], k[:, :at], v[:, :at], return_state=True)
            second, end = mine(q[:, at:], k[:, at:], v[:, at:], state=state, return_state=True)
            np.testing.assert_allclose(np.concatenate([first, second], 1), whole, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(end, last, rtol=1e-3, atol=1e-3)

    def test_steps_continue_a_prefill_in_place(self):
        mine = head("gated")
        q, k, v = operands(mine.explain(), 20)
        gate = log_gates(20)
        whole, last = mine(q, k, v, gate, return_state=True, form="recurrent")
        _, state = mine(q[:, :12], k[:, :12], v[:, :12], gate[:, :12], return_state=True, form="recurrent")
        for t in range(12, 20):
            now = slice(t, t + 1)
            o = mine.step(q[:, now], k[:, now], v[:, now], state, gate[:, now])
            self.assertTrue(same_bits(o, whole[:, now].copy()), f"token {t}")
        self.assertTrue(same_bits(state, last))

    def test_steps_may_begin_with_nothing(self):
        mine = head("plain")
        q, k, v = operands(mine.explain(), 3)
        state = mine.new_state(k)
        self.assertEqual((state.shape, state.dtype), ((2, 2, mine.explain().state_elements), np.float32))
        o = [mine.step(q[:, t : t + 1], k[:, t : t + 1], v[:, t : t + 1], state) for t in range(3)]
        np.testing.assert_allclose(np.concatenate(o, 1), mine(q, k, v), rtol=1e-4, atol=1e-4)

    def test_recent_tokens_beside_the_state_give_what_steps_give(self):
        mine = head("mean")
        q, k, v = operands(mine.explain(), 12)
        whole = mine(q, k, v)
        _, state = mine(q[:, :4], k[:, :4], v[:, :4], return_state=True)
        for begin in (4, 8):
            for i in range(4):
                now, seen = slice(begin + i, begin + i + 1), slice(begin, begin + i + 1)
                o = mine(q[:, now], k[:, seen], v[:, seen], state=state, recent=i)
                np.testing.assert_allclose(o, whole[:, now], rtol=1e-3, atol=1e-3)
            mine.update(k[:, begin : begin + 4], v[:, begin : begin + 4], state)

    def test_query_heads_share_keys_and_values(self):
        mine = head("mean")
        q, k, v = operands(mine.explain(), 40, heads=2, query_heads=6)
        o = mine(q, k, v)
        self.assertEqual(o.shape, (2, 40, 6, 8))
        np.testing.assert_allclose(o, formula(mine.explain(), q, k, v), rtol=1e-3, atol=1e-3)

    def test_a_state_may_be_a_matrix_where_there_is_no_normaliser(self):
        mine = head("plain")
        about = mine.explain()
        q, k, v = operands(about, 10)
        matrix = numbers(9, 2, 2, about.features, about.dv)
        o, state = mine(q, k, v, state=matrix, return_state=True)
        self.assertEqual(state.shape, matrix.shape)
        flat, flat_state = mine(q, k, v, state=matrix.reshape(2, 2, -1), return_state=True)
        self.assertTrue(same_bits(o, flat) and same_bits(state.reshape(2, 2, -1), flat_state))

    def test_any_strides_but_of_the_last_axis(self):
        mine = head("mean")
        q, k, v = operands(mine.explain(), 30)
        expected = mine(q, k, v)
        moved = [array.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3) for array in (q, k, v)]
        wide = [np.concatenate([array, array], 3)[..., : array.shape[3]] for array in (q, k, v)]
        backwards = [array[::-1].copy()[::-1] for array in (q, k, v)]
        for arrays in (moved, wide, backwards):
            self.assertFalse(arrays[0].flags.c_contiguous)
            self.assertTrue(same_bits(mine(*arrays), expected))

    def test_inputs_may_be_read_only(self):
        mine = head("mean")
        q, k, v = operands(mine.explain(), 30)
        expected = mine(q, k, v)
        for array in (q, k, v):
            array.flags.writeable = False
        self.assertTrue(same_bits(mine(q, k, v), expected))

    def test_a_broadcast_axis_is_read_as_it_is(self):
        mine = head("mean")
        q, k, v = operands(mine.explain(), 30, batch=1)
        one = mine(q, k, v)
        three = mine(*(np.broadcast_to(array, (3, *array.shape[1:])) for array in (q, k, v)))
        self.assertTrue(all(same_bits(three[i], one[0]) for i in range(3)))

    def test_bfloat16_is_that_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        mine = head("brain")
        q, k, v = (array.astype(ml_dtypes.bfloat16) for array in operands(mine.explain(), 30))
        o = mine(q, k, v)
        expected, _ = run_command("brain", *(array.astype("float32") for array in (q, k, v)))
        self.assertEqual(o.dtype, ml_dtypes.bfloat16)
        self.assertTrue(same_bits(o.astype("float32"), expected.astype("float32")))

    def test_weights_by_name_and_in_order_are_the_same(self):
        mine = head("trained")
        q, k, v = operands(mine.explain(), 20)
        a, b = numbers(5, 2, 3, 8), numbers(6, 5, 8)
        self.assertEqual(mine.weight_names, ("A", "B"))
        shapes = mine.explain().weight_shapes
        self.assertEqual([(s.rows, s.columns, s.per_head) for s in shapes], [(3, 8, True), (5, 8, False)])
        self.assertEqual([s.axes(2) for s in shapes], [(2, 3, 8), (5, 8)])
        self.assertEqual(head("weighted").explain().weight_shapes[0].axes(4), (4, 8))
        self.assertTrue(same_bits(mine(q, k, v, weights={"B": b, "A": a}), mine(q, k, v, weights=[a, b])))

    def test_a_call_gives_the_same_bits_again(self):
        mine = head("mean")
        for length in (20, 300, 20):
            arrays = operands(mine.explain(), length)
            self.assertTrue(same_bits(mine(*arrays), mine(*arrays)))


if __name__ == "__main__":
    unittest.main()
