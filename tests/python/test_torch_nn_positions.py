"""FPAttention of heads with positions, a mask of keys and learned maps: results, how it begins, steps, refusals."""

from __future__ import annotations

import io
import unittest

from support import fpac

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

from test_torch_nn import attention, by_formula, tokens

HEADS = """
local w = trainable { name = "w", rows = 8, bias = true }
local plain = head { name = "plain", d = 8, dv = 4, terms = linear {} }
return {
  head { name = "waves", d = 8, dv = 4, positions = 1, key_mask = true, normalize = "sum",
         terms = fourier { map = softplus } },
  head { name = "elu", d = 8, dv = 4, key_mask = true, normalize = "sum",
         terms = linear { map = elu_plus_one } },
  head { name = "encoder", d = 8, dv = 4, causal = false, key_mask = true, normalize = "sum",
         terms = linear { map = elu_plus_one } },
  head { name = "mapped", d = 8, dv = 4, normalize = "sum",
         terms = { term { coordinates { w, map = exp } }, term { coordinates { w, map = exp, inner = -1 } } } },
  head { name = "named", d = 8, dv = 4, positions = 2, terms = term { coordinates {
         trainable { name = "x", rows = 6 }, map = softplus, angle = "y", phase = "a", amplitude = "b" } } },
  head { name = "fixed", d = 8, dv = 4, positions = 1, dtype = "bf16", gate = true,
         terms = fourier { a = "turn", b = false, c = "size", shared = true } },
  plain, layer { name = "two", heads = { { head = plain, count = 2 } } },
}
"""


def made(name, **options):
    return attention(name, HEADS, **options)


def counted(length, batch=2):
    return torch.arange(length).repeat(batch, 1)


def mask(length, batch=2, first=4):
    """As of tokens that a batch was filled up with, on the left of its first sequence."""
    return (torch.arange(length) >= first) | (torch.arange(batch)[:, None] > 0)


def waves(p, q, k, positions, hidden):
    turn = torch.einsum("hd,bl->bhld", p["weight_a"][..., 0], positions.double())
    angle = p["weight_b"][:, None, None, :, 0] + turn[:, :, :, None] - turn[:, :, None]
    q, k = (torch.nn.functional.softplus(x) for x in (q, k))
    return torch.einsum("bhld,bhmd,bhlmd->bhlm", q, k, angle.cos() * p["weight_c"][:, None, None, :, 0]) * hidden


def elu(p, q, k, positions, hidden):
    q, k = (torch.nn.functional.elu(x) + 1 for x in (q, k))
    return q @ k.mT * hidden


def mapped(p, q, k, positions, hidden):
    W, b = p["weight_w"][..., :-1], p["weight_w"][:, None, :, -1]
    q, k = (x @ W.mT + b for x in (q, k))
    return q.exp() @ k.exp().mT + (-q).exp() @ (-k).exp().mT


class Results(unittest.TestCase):
    def check(self, name, kernel, **given):
        module, x, exact = made(name), tokens(30), tokens(30).double()
        hidden = mask(30)[:, None, None].double() if "key_mask" in given else 1
        p = {what: x.detach().double().requires_grad_() for what, x in module.named_parameters()}
        ours = module(x, **given)
        theirs = by_formula(module, p, exact, lambda p, q, k: kernel(p, q, k, counted(30), hidden))
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-3, atol=1e-3)
        weight = tokens(30, seed=6)
        (ours * weight).sum().backward()
        (theirs * weight).sum().backward()
        for what, parameter in module.named_parameters():
            limit = 1e-3 * float(p[what].grad.abs().max())
            self.assertGreater(limit, 0, what)
            torch.testing.assert_close(parameter.grad.double(), p[what].grad, rtol=1e-3, atol=limit, msg=what)

    def test_it_is_the_formula_and_so_are_the_gradients_of_every_parameter(self):
        self.check("waves", waves, positions=counted(30), key_mask=mask(30))
        self.check("elu", elu, key_mask=mask(30))
        self.check("mapped", mapped)
        self.check("encoder", elu, key_mask=mask(30))

    def test_without_a_mask_every_key_takes_part(self):
        module, x = made("elu"), tokens(9)
        self.assertTrue(torch.equal(module(x), module(x, key_mask=torch.ones(2, 9, dtype=torch.uint8))))

    def test_positions_are_float32_or_whole_numbers(self):
        module, x = made("waves"), tokens(9)
        y = module(x, positions=counted(9))
        for positions in (counted(9).float(), counted(9).int()[..., None], counted(9).double()):
            self.assertTrue(torch.equal(module(x, positions=positions), y))

    def test_it_learns(self):
        """A teacher that turns faster, in queries and keys alike."""
        module, teacher = made("waves"), made("waves")
        torch.nn.init.uniform_(teacher.weight_b, -0.5, 0.5)
        torch.nn.init.uniform_(teacher.weight_c, 0.5, 2)
        optimizer, losses = torch.optim.Adam(module.weights.values(), 0.02), []
        for step in range(60):
            x, p = tokens(12, batch=8, seed=step), counted(12, 8)
            loss = (module(x, positions=p) - teacher(x, positions=p).detach()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 4)

    def test_a_graph_without_a_break(self):
        torch._dynamo.reset()
        module = made("waves")
        compiled, found = torch.compile(module, fullgraph=True, backend="aot_eager"), []
        for call in (module, compiled):
            module.zero_grad()
            call(tokens(20), positions=counted(20), key_mask=mask(20)).square().sum().backward()
            found.append([p.grad.clone() for p in module.parameters()])
        for a, b in zip(*found):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


class Beginning(unittest.TestCase):
    def test_the_head_tells_what_its_matrices_are(self):
        for name, kinds in (
            ("waves", ("angle", "phase", "amplitude")),
            ("mapped", ("affine",)),
            ("named", ("projection", "angle", "phase", "amplitude")),
            ("fixed", ("angle", "amplitude")),
            ("plain", ()),
        ):
            self.assertEqual(made(name).head.explain().weight_kinds, kinds)

    def test_waves_begin_as_rotary_embeddings(self):
        module = made("waves")
        speed = 10_000 ** -(torch.arange(8) / 8)
        torch.testing.assert_close(module.weight_a.detach(), speed[:, None].expand(2, 8, 1))
        self.assertTrue((module.weight_b == 0).all() and (module.weight_c == 1).all())
        torch.testing.assert_close(made("named").weight_y.detach().norm(dim=-1)[0], 10_000 ** -(torch.arange(6) / 6))

    def test_a_column_that_is_added_begins_as_zero(self):
        W = made("mapped").weight_w.detach()
        self.assertFalse(W[..., -1].any())
        torch.testing.assert_close(W[0, :, :-1] @ W[0, :, :-1].mT, torch.eye(8), rtol=1e-5, atol=1e-5)

    def test_a_state_dict_goes_round(self):
        for name in ("waves", "mapped"):
            module, file = made(name), io.BytesIO()
            given = {"positions": counted(9)} if name == "waves" else {}
            for weight in module.weights.values():
                torch.nn.init.uniform_(weight, 0.1, 1)
            torch.save(module.state_dict(), file)
            file.seek(0)
            other = made(name)
            self.assertFalse(torch.equal(other(tokens(9), **given), module(tokens(9), **given)))
            other.load_state_dict(torch.load(file))
            self.assertTrue(torch.equal(other(tokens(9), **given), module(tokens(9), **given)))

    def test_a_module_without_memory_is_given_some_later(self):
        module = made("waves", device="meta").to_empty(device="cpu")
        module.load_state_dict(made("waves").state_dict())
        given = {"positions": counted(9)}
        self.assertTrue(torch.equal(module(tokens(9), **given), made("waves")(tokens(9), **given)))


class Steps(unittest.TestCase):
    def check(self, name, **given):
        module, x = made(name), tokens(30)

        def part(*here):
            return {what: tensor[:, slice(*here)] for what, tensor in given.items()}

        with torch.no_grad():
            whole, last = module(x, return_state=True, **given)
            y, state = module(x[:, :17], return_state=True, **part(17))
            steps = [module.step(x[:, t : t + 1], state, **part(t, t + 1)) for t in range(17, 30)]
        torch.testing.assert_close(torch.cat([y, *steps], 1), whole, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(state, last, rtol=1e-3, atol=1e-3)

    def test_pieces_and_steps_are_the_whole(self):
        self.check("waves", positions=counted(30), key_mask=mask(30))
        self.check("elu", key_mask=mask(30))

    def test_a_module_in_bf16(self):
        module, x = made("fixed"), tokens(20)
        exact = module(x, positions=counted(20)).detach()
        half = made("fixed").to(torch.bfloat16)
        y = half(x.bfloat16(), positions=counted(20))
        away = (y.detach().float() - exact).norm()
        self.assertLess(float(away), 0.05 * float(exact.norm()))
        y.float().square().mean().backward()
        self.assertTrue(all(p.grad.isfinite().all() for p in half.parameters()))


class Refusals(unittest.TestCase):
    def test_what_a_module_cannot_be_called_with(self):
        waves, plain, x, p = made("waves"), made("plain"), tokens(5), counted(5)
        for words, call in (
            (r"positions: are None, but waves takes them, \[2, 5, 1\]", lambda: waves(x)),
            (r"positions: are \[5\], but \[2, 5, 1\] is needed", lambda: waves(x, positions=p[0])),
            ("positions: are torch.bfloat16, but float32 or whole", lambda: waves(x, positions=p.bfloat16())),
            ("positions: lies on meta, but x on cpu", lambda: waves(x, positions=p.to("meta"))),
            ("positions: requires grad, but", lambda: waves(x, positions=p.float().requires_grad_())),
            ("positions: are given, but plain has none", lambda: plain(x, positions=p)),
            ("key_mask: is given, but plain has no mask", lambda: plain(x, key_mask=mask(5))),
            (r"key_mask: is \[5\], but \[2, 5\]", lambda: waves(x, positions=p, key_mask=mask(5)[0])),
            ("key_mask: is torch.float32, but bool", lambda: waves(x, positions=p, key_mask=mask(5).float())),
            ("two: is a layer, but FPAttention needs one head", lambda: made("two")),
        ):
            with self.assertRaisesRegex(fpac.Error, words):
                call()


if __name__ == "__main__":
    unittest.main()
