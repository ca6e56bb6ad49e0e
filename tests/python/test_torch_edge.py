"""torch's tensors that are empty, without gradients where some are wanted, of other types, or inside of torch.func."""

from __future__ import annotations

import unittest

from support import fpac, head

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

import fpac.nn  # noqa: E402
from test_torch_positions import HEADS, call, given, opened


def cut(leaves, tokens, rows, columns):
    """The first of the sequences, and of their tokens."""
    leaves = {
        name: x.detach()[:rows, :columns].requires_grad_() if name in ("q", "k", "v", "log_gate") else x
        for name, x in leaves.items()
    }
    return leaves, {name: x[:rows, :columns] for name, x in tokens.items()}


class Empty(unittest.TestCase):
    def test_gradients_of_no_sequence_and_of_no_token_are_zeros(self):
        for name in ("elu", "waves", "learned"):
            mine = opened(name)
            for rows, columns in ((0, 5), (2, 0), (0, 0)):
                leaves, tokens = cut(*given(name), rows, columns)
                o = call(mine, leaves, tokens)
                self.assertEqual(o.shape, (rows, columns, 2, 4))
                for what, x in zip(leaves, torch.autograd.grad(o.sum(), leaves.values())):
                    self.assertEqual(x.shape, leaves[what].shape)
                    self.assertFalse(x.any(), what)

    def test_a_state_goes_through_no_tokens_and_so_does_its_gradient(self):
        mine, (leaves, tokens) = opened("waves"), cut(*given("waves"), 2, 0)
        state = torch.ones(2, 2, mine.explain().state_elements, requires_grad=True)
        _, after = call(mine, leaves, tokens, state=state, return_state=True)
        (found,) = torch.autograd.grad(after.sum() * 3, state)
        self.assertTrue(torch.equal(after, state) and (found == 3).all())

    def test_a_module_without_tokens(self):
        torch.manual_seed(0)
        module = fpac.nn.FPAttention(12, 2, HEADS, "elu")
        for shape in ((0, 5, 12), (2, 0, 12)):
            y = module(torch.zeros(shape))
            self.assertEqual(y.shape, shape)
            y.sum().backward()
            self.assertFalse(any(p.grad.any() for p in module.parameters()))


class Refusals(unittest.TestCase):
    def refused(self, error, words, ask):
        with self.assertRaisesRegex(error, words):
            ask()

    def test_what_has_no_gradients_is_not_detached_in_silence(self):
        mine, (leaves, tokens) = opened("waves"), given("waves")
        q, k, v, *weights = leaves.values()
        state = mine.new_state(k)
        plain = [x.detach() for x in (q, k, v)]
        fixed = [x.detach() for x in weights]
        count = torch.ones(2, dtype=torch.int32)
        for words, ask in (
            ("q: requires grad, but with return_saved", lambda: call(mine, leaves, tokens, return_saved=True)),
            ("q: requires grad, but decoding", lambda: call(mine, leaves, tokens, form="recurrent")),
            ("k: requires grad, but a state", lambda: mine.update(k, v, state, weights=weights, **tokens)),
            ("q: requires grad, but drafts", lambda: mine.draft(q, k, v, state, weights=weights, **tokens)),
            (r"weights\[0\]: .* drafts", lambda: mine.draft(*plain, state, weights=weights, **tokens)),
            ("accepted.k: .* drafts", lambda: mine.accept(k, v, state, count, weights=fixed, **tokens)),
        ):
            self.refused(fpac.UnsupportedError, words, ask)

    def test_transforms_of_torch_func(self):
        mine, (leaves, tokens) = opened("elu"), given("elu")
        q, k, v = (x.detach() for x in leaves.values())
        for one in (mine, head("plain")):
            more = tokens if one is mine else {}
            if one is not mine:
                q, k, v = torch.ones(2, 9, 2, 8), torch.ones(2, 9, 2, 8), torch.ones(2, 9, 2, 4)
            for ask in (
                lambda ask=one, q=q, k=k, v=v, more=more: torch.func.grad(lambda x: ask(x, k, v, **more).sum())(q),
                lambda ask=one, q=q, k=k, v=v, more=more: torch.func.vmap(lambda x: ask(x, k, v, **more))(q[None]),
                lambda ask=one, q=q, k=k, v=v, more=more: torch.func.jvp(lambda x: ask(x, k, v, **more), (q,), (q,)),
            ):
                self.refused(fpac.UnsupportedError, "torch.func: its transforms .* do not go through heads", ask)

    def test_types_are_told_as_the_argument_takes_them(self):
        mine, (leaves, tokens) = opened("waves"), given("waves")
        half = {name: x.detach().half() for name, x in leaves.items()}
        double = {**leaves, "a": leaves["a"].detach().double()}
        turned = {**leaves, "a": leaves["a"].detach().transpose(0, 1).contiguous().transpose(0, 1)}
        counted = {**tokens, "positions": tokens["positions"].long()}
        for error, words, ask in (
            (TypeError, "q: is f16, but waves takes f32 here", lambda: call(mine, half, tokens)),
            (TypeError, r"weights\[0\]: is torch.float64, but float32 is taken", lambda: call(mine, double, tokens)),
            (TypeError, "positions: is torch.int64, but float32 is taken", lambda: call(mine, leaves, counted)),
            (ValueError, r"weights\[0\] \(a\): axis 1 has the stride", lambda: call(mine, turned, tokens)),
            (TypeError, "a head cannot be pickled.* save state_dict", lambda: mine.__reduce__()),
        ):
            self.refused(error, words, ask)

    def test_autocast_casts_no_argument_of_a_head(self):
        mine, (leaves, tokens) = opened("elu"), given("elu")
        linear = torch.nn.Linear(6, 6)
        with torch.autocast("cpu", torch.bfloat16):
            call(mine, leaves, tokens).sum().backward()
            turned = {**leaves, "q": linear(leaves["q"])}
            self.refused(TypeError, "q: is bf16, but elu takes f32 here", lambda: call(mine, turned, tokens))
            call(mine, {**leaves, "q": linear(leaves["q"]).float()}, tokens).sum().backward()


class Lives(unittest.TestCase):
    def test_a_backward_pass_keeps_its_head(self):
        leaves, tokens = given("elu")
        expected = torch.autograd.grad(call(opened("elu"), leaves, tokens).sum(), leaves.values())
        o = call(fpac.head(HEADS, "elu", backward=True), leaves, tokens)
        for a, b in zip(torch.autograd.grad(o.sum(), leaves.values()), expected):
            self.assertTrue(torch.equal(a, b))

    def test_a_head_that_was_closed_says_so(self):
        leaves, tokens = given("elu")
        mine = fpac.head(HEADS, "elu", backward=True)
        o = call(mine, leaves, tokens)
        mine.close()
        with self.assertRaisesRegex(fpac.InvalidError, "elu: is closed"):
            o.sum().backward()

    def test_a_mask_that_was_written_to_is_told_by_torch(self):
        leaves, tokens = given("elu")
        o = call(opened("elu"), leaves, tokens)
        tokens["key_mask"][0, 0] = False
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            o.sum().backward()


if __name__ == "__main__":
    unittest.main()
