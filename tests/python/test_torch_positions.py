"""Gradients in torch of heads whose coordinates are made of q and k: waves of positions, masks of keys, maps."""

from __future__ import annotations

import functools
import unittest
import warnings

from support import fpac, numbers

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

import fpac.torch  # noqa: E402

# The last one maps a learned projection and its negative, as LoLCATs does.
HEADS = """
local w = trainable { name = "w", rows = 5, bias = true }
local elu, waves = head { name = "elu", d = 6, dv = 4, key_mask = true, normalize = { "sum", eps = 1e-2 },
                          terms = linear { map = elu_plus_one } },
                   head { name = "waves", d = 6, dv = 4, positions = 2, key_mask = true,
                          normalize = { "sum", eps = 1e-2 }, terms = fourier { map = softplus } }
return {
  elu, waves,
  head { name = "encoder", d = 6, dv = 4, causal = false, key_mask = true, normalize = { "sum", eps = 1e-2 },
         terms = linear { map = elu_plus_one } },
  head { name = "learned", d = 6, dv = 4, gate = true, normalize = "sum",
         terms = { term { coordinates { w, map = exp } }, term { coordinates { w, map = exp, inner = -1 } } } },
  layer { name = "both", heads = { { head = elu, count = 1 }, { head = waves, count = 1 } } },
}
"""
BATCH, LENGTH = 2, 9


@functools.cache
def opened(name, backward=True):
    return fpac.head(HEADS, name, file="tests.lua", backward=backward)


def given(name, length=LENGTH, heads=2):
    """What a call is differentiated by, and what else it has a token. Phases are small: sums do not vanish."""
    draw = functools.partial(lambda seed, *shape: torch.from_numpy(numbers(seed, *shape)))
    q, k, v = (draw(i, BATCH, length, heads, 6 if i < 3 else 4) for i in (1, 2, 3))
    leaves = {"q": q, "k": k, "v": v}
    if name == "learned":
        leaves.update(log_gate=-draw(4, BATCH, length, heads).abs() / 8, w=draw(5, heads, 5, 7) / 2)
    if name in ("waves", "both"):
        first = "waves." if name == "both" else ""
        own = 1 if name == "both" else heads
        waves = (draw(5, own, 6, 2) / 8, draw(6, own, 6) / 8, draw(7, own, 6).abs() + 0.5)
        leaves.update({first + letter: x for letter, x in zip("abc", waves)})
    tokens = {}
    if name in ("waves", "both"):
        counted = torch.arange(float(length))
        tokens["positions"] = torch.stack([counted / 4, counted % 3], -1).repeat(BATCH, 1, 1)
    if name != "learned":
        tokens["key_mask"] = torch.from_numpy(numbers(12, BATCH, length) > -0.5)
        tokens["key_mask"][:, 0] = True
    return {what: x.clone().requires_grad_() for what, x in leaves.items()}, tokens


def call(mine, leaves, tokens, **more):
    """A head of the operands by their names."""
    plain = {name: leaves[name] for name in ("q", "k", "v", "log_gate") if name in leaves}
    weights = [leaves[name] for name in mine._about.weight_names]
    return mine(**plain, weights=weights or None, **tokens, **more)


def by_place(mine, names, tokens, *operands):
    """The same with the operands in their order."""
    return call(mine, dict(zip(names, operands)), tokens)


class Autograd(unittest.TestCase):
    def test_torch_s_check_of_gradients(self):
        """In float32: differences of eps 1e-2 have errors of 1e-3 of what they are of."""
        for name in ("elu", "encoder", "waves", "learned"):
            mine, (leaves, tokens) = opened(name), given(name, 4, 1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that inputs are not of double precision
                asked = functools.partial(by_place, mine, tuple(leaves), tokens)
                right = torch.autograd.gradcheck(asked, tuple(leaves.values()), eps=1e-2, atol=2e-2, rtol=2e-2)
            self.assertTrue(right, name)

    def test_they_are_those_of_head_backward(self):
        for name in ("elu", "encoder", "waves", "learned", "both"):
            mine, (leaves, tokens) = opened(name), given(name)
            d_o = torch.from_numpy(numbers(8, BATCH, LENGTH, 2, 4))
            found = dict(zip(leaves, torch.autograd.grad(call(mine, leaves, tokens), leaves.values(), d_o)))
            with torch.no_grad():
                _, saved = call(mine, leaves, tokens, return_saved=True)
                expected = mine.backward(saved, d_o)
            for what, x in found.items():
                self.assertTrue(torch.equal(x, expected[what]), f"{name}: {what}")

    def test_the_formula_of_torch_s_own_operators(self):
        leaves, tokens = given("waves", 40)
        theirs = {name: x.detach().double().requires_grad_() for name, x in leaves.items()}
        q, k, v = theirs["q"], theirs["k"], theirs["v"]
        turn = torch.einsum("hdn,bln->blhd", theirs["a"], tokens["positions"].double())
        waves = (theirs["b"] + turn[:, :, None] - turn[:, None]).cos() * theirs["c"]
        q, k = (torch.nn.functional.softplus(x) for x in (q, k))
        score = torch.einsum("blhd,bmhd,blmhd->bhlm", q, k, waves).tril() * tokens["key_mask"][:, None, None]
        o = torch.einsum("bhlm,bmhd->blhd", score / (score.sum(-1, keepdim=True) + 1e-2), v)
        exact = torch.autograd.grad(o.square().sum(), theirs.values())
        found = torch.autograd.grad(call(opened("waves"), leaves, tokens).square().sum(), leaves.values())
        for name, a, b in zip(leaves, found, exact):
            torch.testing.assert_close(a.double(), b, rtol=1e-3, atol=1e-3 * float(b.abs().max()), msg=name)

    def test_pieces_with_a_state_and_packed_sequences(self):
        mine, (leaves, tokens) = opened("waves"), given("waves")
        whole = torch.autograd.grad(call(mine, leaves, tokens).square().sum(), leaves.values())

        def part(here):
            cut = {name: x[:, here] if name in ("q", "k", "v") else x for name, x in leaves.items()}
            return cut, {name: x[:, here] for name, x in tokens.items()}

        first, state = call(mine, *part(slice(0, 4)), return_state=True)
        second = call(mine, *part(slice(4, None)), state=state)
        pieces = torch.autograd.grad(torch.cat([first, second], 1).square().sum(), leaves.values())
        packed = {name: x.flatten(0, 1)[None] if name in "qkv" else x for name, x in leaves.items()}
        rows = {name: x.flatten(0, 1)[None] for name, x in tokens.items()}
        o = call(mine, packed, rows, cu_seqlens=torch.tensor([0, LENGTH, 2 * LENGTH]), max_length=LENGTH)
        behind = torch.autograd.grad(o.square().sum(), leaves.values())
        for a, b, c in zip(pieces, behind, whole):
            torch.testing.assert_close(a, c, rtol=1e-3, atol=1e-3)
            torch.testing.assert_close(b, c, rtol=1e-3, atol=1e-3)

    def test_masked_keys_may_be_anything_and_have_zeros(self):
        mine, (leaves, tokens) = opened("elu"), given("elu")
        hidden = ~tokens["key_mask"]
        with torch.no_grad():
            leaves["k"][hidden] = torch.nan
            leaves["v"][hidden] = torch.inf
        for x in torch.autograd.grad(call(mine, leaves, tokens).sum(), leaves.values()):
            self.assertTrue(x.isfinite().all())
        self.assertTrue(hidden.any() and not x[hidden].any())

    def test_positions_have_no_gradients(self):
        mine, (leaves, tokens) = opened("waves"), given("waves")
        tokens["positions"].requires_grad_()
        words = "positions: requires grad, but positions have no gradients"
        q, k, v, *weights = leaves.values()
        rest = (None, weights, None, -1, False, None, 0, tokens["positions"], tokens["key_mask"])
        for ask in (
            lambda: call(mine, leaves, tokens),
            lambda: call(mine, {name: x.detach() for name, x in leaves.items()}, tokens),
            lambda: torch.ops.fpac.forward_saving(mine.key, q, k, v, *rest),
        ):
            with self.assertRaisesRegex(fpac.UnsupportedError, words):
                ask()
        with torch.no_grad():
            call(mine, leaves, tokens)

    def test_of_a_head_without_gradients(self):
        leaves, tokens = given("waves")
        with self.assertRaisesRegex(fpac.UnsupportedError, "q: requires grad, but waves was opened without gradients"):
            call(opened("waves", False), leaves, tokens)


class Operators(unittest.TestCase):
    def test_torch_s_own_checks_of_operators(self):
        ops, checks = torch.ops.fpac, ("test_schema", "test_autograd_registration", "test_faketensor")
        for name in ("elu", "waves", "both"):
            mine, (leaves, tokens) = opened(name), given(name)
            q, k, v, *weights = leaves.values()
            behind = (None, 0, tokens.get("positions"), tokens["key_mask"])
            arguments = (mine.key, q, k, v, None, weights, None, 1, True, *behind)
            torch.library.opcheck(ops.forward_saving.default, arguments, test_utils=checks)
            q, k, v, *weights = (x.detach() for x in leaves.values())
            o, den, _ = ops.forward_saving(mine.key, q, k, v, None, weights, None, 1, True, *behind)
            needs = [True, False, True, False, False, *(i % 2 == 0 for i in range(len(weights)))]
            arguments = (mine.key, q, k, v, None, weights, None, o, den, o, None, 1, needs, *behind)
            torch.library.opcheck(ops.backward.default, arguments, test_utils=("test_schema", "test_faketensor"))

    def test_a_graph_without_a_break(self):
        for name in ("elu", "waves", "learned", "both"):
            torch._dynamo.reset()
            mine, (leaves, tokens) = opened(name), given(name)

            def loss(leaves, tokens, mine=mine):
                return (call(mine, {**leaves, "q": leaves["q"] * 1.5}, tokens) + 1).square().sum()

            compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
            found = torch.autograd.grad(compiled(leaves, tokens), leaves.values())
            for a, b in zip(found, torch.autograd.grad(loss(leaves, tokens), leaves.values())):
                self.assertTrue(torch.equal(a, b), name)


if __name__ == "__main__":
    unittest.main()
