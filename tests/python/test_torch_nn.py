"""FPAttention: what it computes and learns, states, parameters, torch.compile, autocast, and what it refuses."""

from __future__ import annotations

import copy
import io
import math
import tempfile
import unittest
from pathlib import Path

from support import SPEC, fpac

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

import fpac.nn  # noqa: E402

# Beside those of SPEC: heads whose normaliser cannot vanish, or that have none.
MORE = """
return {
  head { name = "learned", d = 8, dv = 4, scale = 1 / 4, normalize = "one_plus_sum",
         terms = term { trainable { name = "A", rows = 3 }, trainable { name = "A", rows = 3 } } },
  head { name = "shared", d = 8, dv = 4, terms = term { trainable { name = "A", rows = 3, shared = true },
                                                        trainable { name = "g", diagonal = true } } },
  head { name = "tall", d = 4, dv = 4, terms = term { trainable { name = "A", rows = 7 } } },
  head { name = "of_two", d = 8, dv = 4, terms = countsketch { d = 8, size = 6, seed = 2, heads = 2 } },
  head { name = "brain_gated", d = 8, dv = 8, dtype = "bf16", gate = true, terms = linear {} },
}
"""
WIDTH = 12


def attention(name, text=SPEC, heads=2, **options):
    """A module with always the same numbers."""
    torch.manual_seed(3)
    return fpac.nn.FPAttention(WIDTH, heads, text, name, **options)


def tokens(length, batch=2, seed=5):
    return torch.randn(batch, length, WIDTH, generator=torch.Generator().manual_seed(seed))


def by_formula(module, p, x, kernel):
    """The module in torch's own operators, of parameters p; kernel gives [B, H, L, L] of q and k [B, H, L, d]."""

    def project(name, heads):
        y = x @ p[f"{name}.weight"].mT + p.get(f"{name}.bias", 0)
        return y.unflatten(-1, (heads, -1)).transpose(1, 2)

    repeat = module.heads // module.key_heads
    k, v = (project(name, module.key_heads).repeat_interleave(repeat, 1) for name in "kv")
    about = module.head.explain()
    score = kernel(p, project("q", module.heads), k)
    score = score.tril() if about.causal else score
    if "gate.weight" in p:
        gate = torch.nn.functional.logsigmoid(x @ p["gate.weight"].mT + p["gate.bias"])
        total = gate.cumsum(1).transpose(1, 2).repeat_interleave(repeat, 1)
        score = score * (total[..., :, None] - total[..., None, :]).tril().exp()
    o = score @ v
    if about.normalized:
        o = o / (score.sum(-1, keepdim=True) + (1 if about.name == "learned" else 1e-6))
    if "out_norm" in p:
        o = torch.nn.functional.rms_norm(o, (about.dv,), p["out_norm"], 1e-6)
    return o.transpose(1, 2).flatten(-2) @ p["out.weight"].mT + p.get("out.bias", 0)


def dot(p, q, k):
    return q @ k.mT


def square(p, q, k):
    return (q @ k.mT / 4).square()


def square_of_rows(p, q, k):
    W = p["weight_A"]
    return (q @ W.mT @ (k @ W.mT).mT / 4).square()


def product_of_rows(p, q, k):
    W, g = p["weight_A"], p["weight_g"][:, None]
    return (q @ W.mT @ (k @ W.mT).mT) * ((q * g) @ (k * g).mT)


class Results(unittest.TestCase):
    def check(self, module, kernel):
        p = {name: x.detach().double().requires_grad_() for name, x in module.named_parameters()}
        x, exact = tokens(40).requires_grad_(), tokens(40).double().requires_grad_()
        ours, theirs = module(x), by_formula(module, p, exact, kernel)
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-4)
        weight = tokens(40, seed=6)
        (ours * weight).sum().backward()
        (theirs * weight).sum().backward()
        torch.testing.assert_close(x.grad.double(), exact.grad, rtol=1e-3, atol=1e-3)
        for name, parameter in module.named_parameters():
            self.assertGreater(float(p[name].grad.norm()), 0, name)
            torch.testing.assert_close(parameter.grad.double(), p[name].grad, rtol=1e-3, atol=2e-3, msg=name)

    def test_it_is_the_formula_and_so_are_the_gradients_of_every_parameter(self):
        self.check(attention("mean"), square)
        self.check(attention("mean", heads=4, key_heads=2, bias=True, norm=True), square)

    def test_with_a_gate(self):
        module = attention("gated", heads=4, key_heads=2)
        torch.nn.init.normal_(module.gate.weight, std=0.3)
        self.check(module, dot)

    def test_with_matrices_that_learn(self):
        self.check(attention("learned", MORE), square_of_rows)
        self.check(attention("shared", MORE), product_of_rows)

    def test_a_spec_is_a_text_or_a_file(self):
        x, expected = tokens(9), attention("mean")(tokens(9))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "mine.lua"
            path.write_text(SPEC)
            for spec in (path, str(path)):
                self.assertTrue(torch.equal(attention("mean", spec)(x), expected))

    def test_a_module_learns_what_another_one_computes(self):
        module, teacher = attention("learned", MORE), attention("learned", MORE)
        torch.nn.init.normal_(teacher.weight_A)
        optimizer, losses = torch.optim.Adam(module.parameters(), 0.02), []
        for step in range(60):
            x = tokens(12, batch=8, seed=step)
            loss = (module(x) - teacher(x).detach()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 4)


class Beginning(unittest.TestCase):
    def test_a_branch_begins_with_the_variance_of_the_plain_dot(self):
        for name, d in (("learned", 8), ("tall", 4)):
            for W in attention(name, MORE).weight_A.detach().double():
                self.assertAlmostEqual(float((W.mT @ W).square().sum()), d, places=4)
        g = attention("shared", MORE).weight_g.detach().double()
        torch.testing.assert_close(g.pow(4).sum(-1), torch.full((2,), 8.0).double())
        self.assertGreater(float(g.std()), 0)  # two of a term do not stay alike

    def test_and_that_is_the_variance_of_independent_tokens(self):
        W = attention("learned", MORE).weight_A[0].detach()
        source = torch.Generator().manual_seed(1)
        q, k = (torch.randn(200_000, 8, generator=source) for _ in range(2))
        dots = ((q @ W.mT) * (k @ W.mT)).sum(-1)
        self.assertLess(abs(float(dots.var()) / 8 - 1), 0.03)

    def test_q_k_and_v_have_the_variance_of_x(self):
        module, x = attention("mean", heads=64), tokens(500)
        for linear in (module.q, module.k, module.v):
            self.assertLess(abs(linear(x).var().item() - 1), 0.1)

    def test_gates_begin_with_memories_in_equal_ratios(self):
        module = attention("gated", heads=3, gate_memory=(10.0, 1000.0))
        gates = module._log_gate(tokens(2)).exp()
        expected = torch.tensor([1 - 1 / 10, 1 - 1 / 100, 1 - 1 / 1000]).expand_as(gates)
        torch.testing.assert_close(gates, expected, rtol=1e-5, atol=1e-5)

    def test_heads_without_a_normaliser_have_a_norm(self):
        self.assertIsNone(attention("mean").out_norm)
        self.assertIsNotNone(attention("gated").out_norm)
        self.assertIsNone(attention("gated", norm=False).out_norm)


class States(unittest.TestCase):
    def check(self, name, text, tolerance=1e-4, **options):
        module = attention(name, text, **options)
        x = tokens(30).to(module.q.weight.dtype)
        with torch.no_grad():
            whole, last = module(x, return_state=True)
            first, state = module(x[:, :11], return_state=True)
            second, state = module(x[:, 11:12], state, return_state=True)  # one token
            third, end = module(x[:, 12:], state, return_state=True)
        parts = torch.cat([first, second, third], 1)
        torch.testing.assert_close(parts, whole, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(end, last, rtol=tolerance, atol=tolerance)
        state = module.new_state(2)
        steps = torch.cat([module.step(x[:, t : t + 1], state) for t in range(30)], 1)
        torch.testing.assert_close(steps, whole, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(state, last, rtol=tolerance, atol=tolerance)
        self.assertFalse(steps.requires_grad)

    def test_pieces_and_steps_are_the_whole(self):
        self.check("mean", SPEC)
        self.check("gated", SPEC, heads=4, key_heads=2)
        self.check("learned", MORE)
        self.check("brain_gated", MORE, 0.05)

    def test_gradients_go_through_a_state(self):
        module, x = attention("gated"), tokens(30)
        module(x).square().sum().backward()
        whole = module.k.weight.grad.clone()
        module.zero_grad()
        first, state = module(x[:, :13], return_state=True)
        second = module(x[:, 13:], state)
        torch.cat([first, second], 1).square().sum().backward()
        torch.testing.assert_close(module.k.weight.grad, whole, rtol=1e-3, atol=1e-3)


class Parameters(unittest.TestCase):
    def test_a_state_dict_goes_round(self):
        for name, text in (("gated", SPEC), ("shared", MORE)):
            module, file = attention(name, text, bias=True), io.BytesIO()
            torch.save(module.state_dict(), file)
            file.seek(0)
            torch.manual_seed(99)
            other = fpac.nn.FPAttention(WIDTH, 2, text, name, bias=True)
            self.assertFalse(torch.equal(other(tokens(9)), module(tokens(9))))
            other.load_state_dict(torch.load(file))
            self.assertTrue(torch.equal(other(tokens(9)), module(tokens(9))))
        self.assertEqual([k for k in module.state_dict() if "weight_" in k], ["weight_A", "weight_g"])
        with self.assertRaisesRegex(RuntimeError, "weight_A"):
            other.load_state_dict(attention("learned", MORE, bias=True).state_dict())

    def test_a_copy_is_of_its_own_and_has_the_same_head(self):
        module = attention("learned", MORE)
        other = copy.deepcopy(module)
        self.assertIs(other.head, module.head)
        torch.nn.init.zeros_(other.weight_A)
        self.assertFalse(torch.equal(other(tokens(9)), module(tokens(9))))

    def test_a_module_without_memory_is_given_some_later(self):
        module = attention("learned", MORE, device="meta")
        module = module.to_empty(device="cpu")
        module.load_state_dict(attention("learned", MORE).state_dict())
        self.assertTrue(torch.equal(module(tokens(9)), attention("learned", MORE)(tokens(9))))


class Types(unittest.TestCase):
    def near(self, module, x, exact, limit=0.03):
        self.assertLess(float((module(x).float() - exact).norm()), limit * float(exact.norm()))

    def test_autocast_and_modules_in_bf16(self):
        x = tokens(20)
        for name, text in (("brain_gated", MORE), ("learned", MORE)):
            module = attention(name, text)
            exact = module(x).detach()
            with torch.autocast("cpu", torch.bfloat16):
                y = module(x)
            self.assertEqual(y.dtype, torch.bfloat16)
            self.assertLess(float((y.detach().float() - exact).norm()), 0.03 * float(exact.norm()))
            y.float().square().mean().backward()
            for name, parameter in module.named_parameters():
                self.assertEqual(parameter.grad.dtype, torch.float32)
                self.assertTrue(math.isfinite(parameter.grad.norm().item()), name)
            half = copy.deepcopy(module).to(torch.bfloat16)
            self.assertEqual(half(x.bfloat16()).dtype, torch.bfloat16)
            self.near(half, x.bfloat16(), exact)

    def test_log_gates_stay_in_float32(self):
        module = attention("gated", gate_memory=(1000.0, 1000.0))
        with torch.autocast("cpu", torch.bfloat16):
            gates = module._log_gate(tokens(3))
        self.assertEqual(gates.dtype, torch.float32)
        torch.testing.assert_close(gates.exp(), torch.full_like(gates, 1 - 1 / 1000), rtol=1e-6, atol=1e-6)


class Compiled(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def test_forward_and_backward_without_a_break(self):
        for name, text in (("mean", SPEC), ("gated", SPEC), ("shared", MORE), ("brain_gated", MORE)):
            module = attention(name, text)
            compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
            found = []
            for call in (module, compiled):
                x = tokens(20).requires_grad_()
                module.zero_grad()
                call(x).square().sum().backward()
                found.append([x.grad, *(p.grad.clone() for p in module.parameters())])
            for a, b in zip(*found):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)

    def test_in_autocast(self):
        module = attention("brain_gated", MORE)

        def call(x):
            with torch.autocast("cpu", torch.bfloat16):
                return module(x)

        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        self.assertTrue(torch.equal(compiled(tokens(20)), call(tokens(20))))

    def test_states_and_steps(self):
        module, x = attention("gated"), tokens(8)

        def generate(x, state):
            y, state = module(x[:, :7], state, return_state=True)
            return y, module.step(x[:, 7:], state), state

        compiled = torch.compile(generate, fullgraph=True, backend="aot_eager")
        with torch.no_grad():
            for a, b in zip(compiled(x, module.new_state(2)), generate(x, module.new_state(2))):
                torch.testing.assert_close(a, b)


class Refusals(unittest.TestCase):
    def test_what_a_module_cannot_be_made_of(self):
        make = fpac.nn.FPAttention
        for words, call in (
            ("heads: is 0, but a whole number from 1 on", lambda: make(WIDTH, 0, SPEC, "mean")),
            ("key_heads: is 3, of which heads = 4 is no multiple", lambda: attention("mean", heads=4, key_heads=3)),
            ("gate_memory: is .* above 1", lambda: attention("gated", gate_memory=(1.0, 5.0))),
            ("no head", lambda: attention("nobody")),
            ("there are 11 heads, so name one of", lambda: make(WIDTH, 2, SPEC)),
            ("key_heads: is 3, but of_two has constants for 2", lambda: attention("of_two", MORE, 3, backward=False)),
            ("spec: is a int, but a path or a text", lambda: make(WIDTH, 2, 7)),
            ("has a window, which FPAttention does not support", lambda: attention("windowed", backward=False)),
        ):
            with self.assertRaisesRegex(fpac.Error, words):
                call()
        with self.assertRaisesRegex(fpac.UnsupportedError, "for which gradients are not implemented"):  # in the library's words
            attention("windowed")

    def test_what_a_module_cannot_be_called_with(self):
        module, gated = attention("mean"), attention("gated")
        for words, call in (
            (r"x: is \[2, 5, 3\], but \[B, L, 12\]", lambda: module(torch.ones(2, 5, 3))),
            ("x: is torch.float64, but the module torch.float32", lambda: module(tokens(3).double())),
            ("x: lies on meta, but the module on cpu", lambda: module(tokens(3).to("meta"))),
            (r"state: is \[2, 2, 72\], but \[3, 2, 64\]", lambda: gated(tokens(3, 3), torch.zeros(2, 2, 72))),
            ("state: is torch.float64 on cpu, but f32", lambda: gated(tokens(3), gated.new_state(2).double())),
        ):
            with self.assertRaisesRegex(fpac.Error, words):
                call()

    def test_without_gradients(self):
        module = attention("full", backward=False)
        with self.assertRaisesRegex(fpac.UnsupportedError, "backward=False: call it under torch.no_grad"):
            module(tokens(3))
        with torch.no_grad():
            self.assertEqual(module(tokens(3)).shape, (2, 3, WIDTH))
            with self.assertRaisesRegex(fpac.UnsupportedError, "state: needs a causal head"):
                module(tokens(3), return_state=True)


if __name__ == "__main__":
    unittest.main()
