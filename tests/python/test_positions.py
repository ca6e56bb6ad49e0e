"""Heads that take positions and a mask of keys: the bits of `fpac run`, the formula, refusals, torch."""

from __future__ import annotations

import unittest

from support import SPEC, fpac, head, np, numbers, operands, run_command, same_bits

try:
    import torch
except ImportError:
    torch = None

LENGTH, BATCH, HEADS = 40, 2, 2


def tokens(length=LENGTH):
    """Positions of two numbers, the second one far from zero, and a mask that hides the first keys."""
    positions = np.stack([np.arange(length), 1000 + numbers(11, length) * 10], -1).astype("float32")
    mask = numbers(12, BATCH, length) > -0.5
    mask[:, :3] = False
    return np.repeat(positions[None], BATCH, 0), mask


def weights():
    """a, b and c of one head each."""
    return {"a": numbers(13, HEADS, 8, 2), "b": numbers(14, HEADS, 8), "c": np.abs(numbers(15, HEADS, 8))}


def expected(q, k, v, positions, mask, given, causal=True):
    """The sum of s(q) s(k) c cos(b + a (p_q - p_k)) v over its normaliser, in double precision."""
    a, b, c = (given[name].astype("float64") for name in "abc")
    q, k = (np.log1p(np.exp(array.astype("float64"))) for array in (q, k))
    phase = np.einsum("hdp,blp->blhd", a, positions.astype("float64"))
    turn = np.cos(b + phase[:, :, None] - phase[:, None]) * c
    score = np.einsum("blhd,bmhd,blmhd->bhlm", q, k, turn)
    score = np.tril(score) if causal else score
    score = score * mask[:, None, None, :]
    return np.einsum("bhlm,bmhd->blhd", score / (score.sum(-1, keepdims=True) + 1e-3), v.astype("float64"))


class Positions(unittest.TestCase):
    def call(self, length=LENGTH, **more):
        mine = head("turned")
        q, k, v = operands(mine.explain(), length, BATCH, HEADS)
        positions, mask = tokens(length)
        given = {"weights": weights(), "positions": positions, "key_mask": mask}
        return mine, (q, k, v), {**given, **more}

    def test_the_formula_holds(self):
        mine, arrays, more = self.call()
        o = mine(*arrays, **more)
        exact = expected(*arrays, more["positions"], more["key_mask"], more["weights"])
        self.assertFalse(o[:, :3].any())  # no key so far: 0 / eps
        # where weights of both signs cancel, a quotient says little
        near = np.abs(exact) < 20
        np.testing.assert_allclose(o[near], exact[near], rtol=1e-3, atol=1e-3)

    def test_gradients_are_slopes(self):
        mine = fpac.head(SPEC, "counted", file="tests.lua", backward=True)
        q, k, v = operands(mine.explain(), LENGTH, BATCH, HEADS)
        positions = np.repeat(np.arange(LENGTH, dtype="float32")[None] / 8, BATCH, 0)
        arrays = {"q": q, "k": k, "v": v, "a": numbers(16, HEADS, 8, 1)}
        d_o = numbers(17, *v.shape)

        def run(given, **more):
            plain = {name: given[name] for name in "qkv"}
            return mine(**plain, weights={"a": given["a"]}, positions=positions, **more)

        gradients = mine.backward(run(arrays, return_saved=True)[1], d_o)
        self.assertEqual(set(gradients), set(arrays))
        for name, x in arrays.items():
            direction = numbers(18, *x.shape)
            step = np.float32(1e-3)
            up, down = (run({**arrays, name: x + side * step * direction}) for side in (np.float32(1), np.float32(-1)))
            change = float(((up - down).astype("float64") * d_o).sum() / (2 * float(step)))
            found = float((gradients[name].astype("float64") * direction).sum())
            self.assertAlmostEqual(found, change, delta=0.01 * (1 + abs(change)), msg=name)

    def test_masked_keys_have_no_gradients(self):
        mine = fpac.head(SPEC, "turned", file="tests.lua", backward=True)
        _, (q, k, v), more = self.call()
        saved = mine(q, k, v, return_saved=True, **more)[1]
        gradients = mine.backward(saved, numbers(19, *v.shape))
        hidden = ~more["key_mask"]
        self.assertFalse(gradients["k"][hidden].any() or gradients["v"][hidden].any())
        self.assertTrue(gradients["k"][more["key_mask"]].any() and np.isfinite(gradients["a"]).all())

    def test_every_form_gives_the_bits_of_fpac_run(self):
        for form in ("parallel", "chunked", "recurrent", None):
            mine, arrays, more = self.call(form=form)
            o, state = mine(*arrays, return_state=True, **more)
            there, there_state = run_command("turned", *arrays, **more)
            self.assertTrue(same_bits(o, there), form)
            self.assertTrue(same_bits(state, there_state.reshape(state.shape)), form)

    def test_counted_positions_are_taken_by_fpac_run(self):
        mine = head("counted")
        q, k, v = operands(mine.explain(), 20)
        counted, given = np.tile(np.arange(20), (2, 1)), {"a": numbers(16, 2, 8)}
        there, _ = run_command("counted", q, k, v, weights=given, positions=counted)
        flat = counted.astype("float32")
        self.assertTrue(same_bits(mine(q, k, v, weights=given, positions=flat), there))
        self.assertTrue(same_bits(mine(q, k, v, weights=given, positions=flat[..., None]), there))
        huge = counted + 2**24 + 1
        with self.assertRaisesRegex(AssertionError, "the integer 16777217, number 1 of the array"):
            run_command("counted", q, k, v, weights=given, positions=huge)

    def test_masked_keys_count_for_nothing(self):
        mine, (q, k, v), more = self.call()
        o = mine(q, k, v, **more)
        hidden = ~more["key_mask"]
        k[hidden], v[hidden] = np.nan, np.inf
        self.assertTrue(same_bits(mine(q, k, v, **more), o))
        more["key_mask"] = more["key_mask"].astype("uint8") * 3
        self.assertTrue(same_bits(mine(q, k, v, **more), o))

    def test_strides_of_both(self):
        mine, arrays, more = self.call()
        o = mine(*arrays, **more)
        wide = np.full((LENGTH, 2, BATCH, 2), 7, "float32").transpose(2, 0, 3, 1)
        wide[..., 0] = more["positions"]
        more["positions"] = wide[..., 0]
        more["key_mask"] = np.repeat(more["key_mask"], 2, 1)[:, ::2]
        self.assertTrue(same_bits(mine(*arrays, **more), o))

    def test_steps_and_recent_tokens_have_their_own(self):
        mine, (q, k, v), more = self.call()
        positions, mask, given = more["positions"], more["key_mask"], {"weights": more["weights"]}
        whole, end = mine(q, k, v, return_state=True, form="recurrent", **more)
        state, at = mine.new_state(k), 30
        mine.update(k[:, :at], v[:, :at], state, positions=positions[:, :at], key_mask=mask[:, :at], **given)
        for t in range(at, LENGTH):
            now = slice(at, t + 1)
            tail = {"positions": positions[:, now], "key_mask": mask[:, now], "recent": t - at}
            o = mine(q[:, t : t + 1], k[:, now], v[:, now], state=state, **tail, **given)
            np.testing.assert_allclose(o[:, 0], whole[:, t], rtol=1e-3, atol=1e-3)
        for t in range(at, LENGTH):
            now = slice(t, t + 1)
            tail = {"positions": positions[:, now], "key_mask": mask[:, now]}
            o = mine.step(q[:, now], k[:, now], v[:, now], state, **tail, **given)
            np.testing.assert_allclose(o[:, 0], whole[:, t], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(state, end, rtol=1e-3, atol=1e-3)

    def test_what_is_refused(self):
        mine, arrays, more = self.call()
        positions, mask = more["positions"], more["key_mask"]
        cases = (
            ({"positions": None}, fpac.InvalidError, "positions: is NULL, but turned needs positions of 2 numbers"),
            ({"key_mask": None}, fpac.InvalidError, "key_mask: is NULL, but turned needs a mask of keys"),
            ({"positions": positions[..., :1]}, fpac.InvalidError, "axis 2 has 1 numbers"),
            ({"positions": positions[:, 1:]}, fpac.InvalidError, "axis 1 has 39 tokens, but q has 40"),
            ({"positions": positions.astype("int64")}, fpac.ArgumentTypeError, "positions: is int64, but"),
            ({"positions": positions.astype("float16")}, fpac.ArgumentTypeError, "positions: is f16, but turned"),
            ({"key_mask": mask[:1]}, fpac.InvalidError, "axis 0 has 1 sequences, but q has 2"),
            ({"key_mask": mask.astype("float32")}, fpac.ArgumentTypeError, "key_mask: is float32, but bool or uint8"),
        )
        for change, error, words in cases:
            with self.assertRaisesRegex(error, words):
                mine(*arrays, **{**more, **change})
        plain = head("plain")
        with self.assertRaisesRegex(fpac.InvalidError, "plain has no positions"):
            plain(*operands(plain.explain(), LENGTH), positions=positions)
        with self.assertRaisesRegex(fpac.InvalidError, "plain has no mask of keys"):
            plain(*operands(plain.explain(), LENGTH), key_mask=mask)

    def test_a_head_says_what_it_takes(self):
        turned, plain = head("turned").explain(), head("plain").explain()
        self.assertEqual((turned.d, turned.positions, turned.key_mask, turned.heads), (8, 2, True, 0))
        self.assertEqual((plain.d, plain.positions, plain.key_mask, plain.heads), (8, 0, False, 0))

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_torch_gives_the_same_bits(self):
        mine, arrays, more = self.call()
        expected_o = mine(*arrays, **more)
        arrays = [torch.from_numpy(array) for array in arrays]
        more = {
            "weights": {name: torch.from_numpy(array) for name, array in more["weights"].items()},
            "positions": torch.from_numpy(more["positions"]),
            "key_mask": torch.from_numpy(more["key_mask"]),
        }
        self.assertTrue(same_bits(mine(*arrays, **more).numpy(), expected_o))
        more["key_mask"] = more["key_mask"].to(torch.uint8)
        self.assertTrue(same_bits(mine(*arrays, **more).numpy(), expected_o))
        more["positions"].requires_grad_()
        with self.assertRaisesRegex(fpac.UnsupportedError, "positions"):
            mine(*arrays, **more)

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_operators_take_them(self):
        mine, arrays, more = self.call()
        given = [torch.from_numpy(array) for array in arrays]
        matrices = [torch.from_numpy(more["weights"][name]) for name in mine.weight_names]
        positions, mask = torch.from_numpy(more["positions"]), torch.from_numpy(more["key_mask"])
        o = torch.ops.fpac.forward(mine.key, *given, None, matrices, None, -1, 0, positions, mask)
        self.assertTrue(same_bits(o.numpy(), mine(*arrays, **more)))
        state = torch.zeros(BATCH, HEADS, mine.explain().state_elements)
        k, v = given[1:]
        torch.ops.fpac.update(mine.key, k, v, state, None, matrices, positions, mask)
        again = mine(*arrays, return_state=True, form="chunked", **more)[1]
        np.testing.assert_allclose(state.numpy(), again, rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    unittest.main()
