"""Gradients by NumPy's arrays: slopes of forward passes, what is wanted, and what is refused."""

from __future__ import annotations

import functools
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import COMMAND, SPEC, fpac, head, log_gates, np, numbers, operands, same_bits


@functools.cache
def trained(name: str) -> fpac.Head:
    """One head of SPEC with its gradients."""
    return fpac.head(SPEC, name, file="tests.lua", backward=True)


def slope(loss, x, gradient):
    """Of a loss along a direction: by the gradient, and by differences."""
    direction = numbers(9, *x.shape)
    step = np.float32(1e-3)
    change = (loss(x + step * direction) - loss(x - step * direction)) / (2 * float(step))
    return float((gradient.astype("float64") * direction).sum()), change


class Backward(unittest.TestCase):
    def compare(self, mine, arrays, d_state=None):
        """arrays: by name."""
        matrices = [name for name in mine.weight_names if name in arrays]
        d_o = numbers(7, *arrays["q"].shape[:3], mine.explain().dv)

        def run(given):
            plain = {name: array for name, array in given.items() if name not in matrices}
            return mine(
                **plain, weights=[given[name] for name in matrices] or None, return_state=True, return_saved=True
            )

        def loss(name, x):
            o, state, _ = run({**arrays, name: x.astype("float32")})
            return float((o.astype("float64") * d_o).sum() + (0 if d_state is None else (state * d_state).sum()))

        gradients = mine.backward(run(arrays)[2], d_o, d_state)
        self.assertEqual(set(gradients), set(arrays))
        for name, x in arrays.items():
            self.assertEqual((gradients[name].shape, gradients[name].dtype), (x.shape, x.dtype))
            by_gradient, by_difference = slope(lambda y, name=name: loss(name, y), x, gradients[name])
            self.assertAlmostEqual(by_gradient, by_difference, delta=0.01 * (1 + abs(by_difference)), msg=name)

    def test_slopes_with_a_normaliser_and_a_state(self):
        mine = trained("mean")
        q, k, v = operands(mine.explain(), 70, query_heads=4)
        state = 0 * mine.new_state(k) + 1
        self.compare(mine, {"q": q, "k": k, "v": v, "state": state}, 1e-2 * numbers(8, *state.shape))

    def test_slopes_with_gates(self):
        mine = trained("gated")
        q, k, v = operands(mine.explain(), 70)
        self.compare(mine, {"q": q, "k": k, "v": v, "log_gate": log_gates(70)})

    def test_slopes_with_matrices(self):
        mine = trained("trained")
        q, k, v = (np.abs(x) for x in operands(mine.explain(), 20))
        matrices = {"A": np.abs(numbers(5, 2, 3, 8)), "B": np.abs(numbers(6, 5, 8))}
        self.compare(mine, {"q": q, "k": k, "v": v, **matrices})

    def test_what_is_not_wanted_is_not_there(self):
        mine = trained("gated")
        q, k, v = operands(mine.explain(), 12)
        o, saved = mine(q, k, v, log_gates(12), return_saved=True)
        self.assertTrue(same_bits(o, mine(q, k, v, log_gates(12))))
        every = mine.backward(saved, o)
        some = mine.backward(saved, o, wanted=["v", "state"])
        self.assertEqual(set(some), {"v", "state"})
        self.assertTrue(same_bits(some["v"], every["v"]))

    def test_a_bundle_has_the_gradients_that_it_was_written_with(self):
        with tempfile.TemporaryDirectory() as folder:
            spec = Path(folder) / "tests.lua"
            spec.write_text(SPEC)
            gen = [COMMAND, "gen", spec, "--head", "mean", "-o", folder, "--target", "c", "--object"]
            subprocess.run(gen, check=True, capture_output=True)
            with self.assertRaisesRegex(fpac.UnsupportedError, "written without gradients .* fpac gen --backward"):
                fpac.load_bundle(folder, "mean", cache_dir="", backward=True)
            subprocess.run([*gen, "--backward"], check=True, capture_output=True)
            mine = fpac.load_bundle(folder, "mean", cache_dir="", backward=True)
        arrays = operands(mine.explain(), 20)
        o, saved = mine(*arrays, return_saved=True)
        ours = mine.backward(saved, o)
        theirs = trained("mean").backward(trained("mean")(*arrays, return_saved=True)[1], o)
        self.assertTrue(all(same_bits(ours[name], theirs[name]) for name in ("q", "k", "v")))

    def test_sequences_of_different_lengths_have_the_bits_of_calls_of_their_own(self):
        offsets, slots = [2, 2, 30, 31, 95], [1, -1, 2, 0]
        mine = trained("gated")
        q, k, v = operands(mine.explain(), 100, batch=1, query_heads=4)
        gate, d_o = log_gates(100, batch=1), numbers(7, 1, 100, 4, mine.explain().dv)
        pool = numbers(8, 3, *mine.new_state(k).shape[1:])
        d_state = numbers(9, 4, *pool.shape[1:])
        packed = {"cu_seqlens": np.array(offsets, "int64"), "state_index": np.array(slots, "int32"), "max_length": 64}
        o, states, saved = mine(
            q, k, v, gate, state=pool, form="chunked", return_state=True, return_saved=True, **packed
        )
        found = mine.backward(saved, d_o, d_state)
        self.assertEqual(found["state"].shape, (4, *pool.shape[1:]))
        for name in ("q", "k", "v", "log_gate"):
            self.assertFalse(found[name][:, :2].any() or found[name][:, 95:].any())
        for s, slot in enumerate(slots):
            part = slice(offsets[s], offsets[s + 1])
            state = pool[slot : slot + 1] if slot >= 0 else np.zeros_like(pool[:1])
            tokens = (x[:, part] for x in (q, k, v, gate))
            own = mine(*tokens, state=state, form="chunked", return_state=True, return_saved=True)
            theirs = mine.backward(own[2], d_o[:, part], d_state[s : s + 1])
            self.assertTrue(same_bits(states[s : s + 1], own[1]))
            self.assertTrue(same_bits(found["state"][s : s + 1], theirs["state"]))
            for name in ("q", "k", "v", "log_gate"):
                self.assertTrue(same_bits(found[name][:, part], theirs[name]), name)

    def test_queries_that_see_no_key_leave_no_trace_where_their_gradient_is_zero(self):
        """Padding on the left and eps = 0: their outputs are 0 / 0."""
        mine = fpac.head(
            """return head { name = "padded", d = 8, dv = 4, key_mask = true, normalize = { "max", eps = 0 },
            terms = term { coordinates { trainable { name = "A", rows = 3 }, map = exp } } }""",
            backward=True,
        )
        q, k, v = operands(mine.explain(), 12)
        matrix, d_o = numbers(5, 2, 3, 8) / 4, numbers(7, 2, 12, 2, 4)
        mask = np.tile(np.arange(12) >= 5, (2, 1))
        d_o[:, :5] = 0
        for form in ("parallel", "chunked"):
            o, saved = mine(q, k, v, weights=[matrix], key_mask=mask, form=form, return_saved=True)
            self.assertTrue(np.isnan(o[:, :5]).all() and np.isfinite(o[:, 5:]).all())
            found = mine.backward(saved, d_o)
            _, saved = mine(q[:, 5:], k[:, 5:], v[:, 5:], weights=[matrix], key_mask=mask[:, 5:], return_saved=True)
            own = mine.backward(saved, d_o[:, 5:])
            np.testing.assert_allclose(found["A"], own["A"], rtol=1e-4, atol=1e-5)
            for name in ("q", "k", "v"):
                self.assertFalse(found[name][:, :5].any(), name)
                np.testing.assert_allclose(found[name][:, 5:], own[name], rtol=1e-4, atol=1e-5)

    def test_what_is_refused(self):
        q, k, v = operands(head("mean").explain(), 6)
        with self.assertRaises(fpac.UnsupportedError) as caught:
            head("mean")(q, k, v, return_saved=True)
        self.assertIn("open it with backward=True", str(caught.exception))
        mine = trained("mean")
        o, saved = mine(q, k, v, return_saved=True)
        for words, call in (
            ("names 'w', but there are q", lambda: mine.backward(saved, o, wanted=["w"])),
            ("log_gate, which was not given", lambda: mine.backward(saved, o, wanted=["log_gate"])),
            ("axis 1 has 5 elements", lambda: mine.backward(saved, o[:, :5])),
        ):
            with self.assertRaises(fpac.InvalidError) as caught:
                call()
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(fpac.UnsupportedError) as caught:
            fpac.head(SPEC, "windowed", file="tests.lua", backward=True)
        self.assertIn("has a window, for which gradients are not implemented", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
