"""Gradients in torch: autograd, torch's own checks, torch.compile, a module that learns, and what is refused."""

from __future__ import annotations

import functools
import unittest
import warnings

from support import SPEC, fpac, log_gates, numbers, operands

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

import fpac.torch  # noqa: E402


@functools.cache
def trained(name: str) -> fpac.Head:
    """One head of SPEC with its gradients."""
    return fpac.head(SPEC, name, file="tests.lua", backward=True)


def leaves(mine, length, dtype=torch.float32, **more):
    """q, k, v for a head, which require grad."""
    return [torch.from_numpy(x).to(dtype).requires_grad_() for x in operands(mine.explain(), length, **more)]


def square_mean(q, k, v):
    """The head `mean` by torch's own operators."""
    repeat = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(repeat, 2), v.repeat_interleave(repeat, 2)
    score = (torch.einsum("blhd,bmhd->bhlm", q, k) / 4).square().tril()
    return torch.einsum("bhlm,bmhd->blhd", score / (score.sum(-1, keepdim=True) + 1e-6), v)


class Autograd(unittest.TestCase):
    def test_gradients_are_those_of_the_formula(self):
        mine = trained("mean")
        ours, theirs = leaves(mine, 70, query_heads=4), leaves(mine, 70, query_heads=4)
        theirs = [x.detach().double().requires_grad_() for x in theirs]
        weight = torch.from_numpy(numbers(7, 2, 70, 4, 8))
        (mine(*ours) * weight).sum().backward()
        (square_mean(*theirs) * weight.double()).sum().backward()
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a.grad.double(), b.grad, rtol=1e-4, atol=1e-4)

    def test_every_dtype(self):
        for name, dtype in (("half", torch.float16), ("brain", torch.bfloat16)):
            mine, exact = trained(name), trained("mean")
            ours = leaves(mine, 30, dtype)
            theirs = [x.detach().float().requires_grad_() for x in ours]
            mine(*ours).sum().backward()
            exact(*theirs).sum().backward()
            for a, b in zip(ours, theirs):
                self.assertEqual(a.grad.dtype, dtype)
                self.assertLess(float((a.grad.float() - b.grad).norm()), 0.02 * float(b.grad.norm()))

    def test_states_gates_and_matrices(self):
        mine = trained("gated")
        q, k, v = leaves(mine, 40)
        gate = torch.from_numpy(log_gates(40)).requires_grad_()
        whole = torch.autograd.grad(mine(q, k, v, gate).square().sum(), (q, k, v, gate))
        o, state = mine(q[:, :15], k[:, :15], v[:, :15], gate[:, :15], return_state=True)
        rest = mine(q[:, 15:], k[:, 15:], v[:, 15:], gate[:, 15:], state=state)
        parts = torch.autograd.grad(torch.cat([o, rest], 1).square().sum(), (q, k, v, gate))
        for a, b in zip(parts, whole):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)

    def test_torch_s_check_of_gradients(self):
        """In float32: differences of eps 1e-2 have errors of 1e-3 of what they are of."""
        mine = trained("trained")
        q, k, v = (x.detach().abs().requires_grad_() for x in leaves(mine, 5))
        a = torch.from_numpy(numbers(5, 2, 3, 8)).abs().requires_grad_()
        b = torch.from_numpy(numbers(6, 5, 8)).abs().requires_grad_()

        def call(q, k, v, a, b):
            return mine(q, k, v, weights=[a, b])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that inputs are not of double precision
            right = torch.autograd.gradcheck(call, (q, k, v, a, b), eps=1e-2, atol=2e-2, rtol=2e-2)
        self.assertTrue(right)

    def test_some_operands_alone(self):
        mine = trained("mean")
        q, k, v = leaves(mine, 20)
        every = torch.autograd.grad(mine(q, k, v).sum(), (q, k, v))
        (alone,) = torch.autograd.grad(mine(q.detach(), k.detach(), v).sum(), (v,))
        self.assertTrue(torch.equal(alone, every[2]))

    def test_a_matrix_that_learns(self):
        mine = trained("trained")
        q, k, v = (x.detach().abs() for x in leaves(mine, 20))
        a = torch.nn.Parameter(torch.from_numpy(numbers(5, 2, 3, 8)).abs())
        b = torch.from_numpy(numbers(6, 5, 8)).abs()
        wanted = mine(q, k, v, weights=[torch.from_numpy(numbers(8, 2, 3, 8)).abs(), b])
        optimizer, losses = torch.optim.Adam([a], 0.05), []
        for _ in range(30):
            optimizer.zero_grad()
            loss = (mine(q, k, v, weights=[a, b]) - wanted).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        self.assertLess(losses[-1], losses[0] / 4)

    def test_sequences_of_different_lengths(self):
        """Each has the gradients of a call of its own, on the CPU its bits; tokens of nobody have zeros."""
        mine, offsets = trained("gated"), [2, 2, 30, 31, 95]
        q, k, v = leaves(mine, 100, batch=1)
        gate = torch.from_numpy(log_gates(100, batch=1)).requires_grad_()
        given = torch.from_numpy(numbers(8, 4, *mine.new_state(k).shape[1:])).requires_grad_()
        d_o = torch.from_numpy(numbers(7, 1, 100, *v.shape[2:]))
        packed = {"cu_seqlens": torch.tensor(offsets), "max_length": 64, "state": given, "return_state": True}
        tokens = (q, k, v, gate)
        o, state = mine(*tokens, form="chunked", **packed)
        self.assertEqual(state.shape, given.shape)
        found = torch.autograd.grad((o * d_o)[:, 2:95].sum() + state.square().sum(), (*tokens, given))
        for x in found[:4]:
            self.assertFalse(x[:, :2].any() or x[:, 95:].any())
        for s in range(4):
            part = slice(offsets[s], offsets[s + 1])
            own, last = mine(*(x[:, part] for x in tokens), form="chunked", state=given[s : s + 1], return_state=True)
            theirs = torch.autograd.grad((own * d_o[:, part]).sum() + last.square().sum(), (*tokens, given))
            for a, b in zip(found[:4], theirs[:4]):
                self.assertTrue(torch.equal(a[:, part], b[:, part]))
            self.assertTrue(torch.equal(found[4][s], theirs[4][s]))

    def test_what_is_refused(self):
        mine = trained("mean")
        q, k, v = leaves(mine, 6)
        index = torch.zeros(2, dtype=torch.int32)
        for words, call in (
            ("with state_index", lambda: mine(q, k, v, state=mine.new_state(k), state_index=index)),
            ("updated in place", lambda: mine.step(q[:, :1], k[:, :1], v[:, :1], mine.new_state(k))),
            ("decoding has no gradients", lambda: mine(q, k, v, form="recurrent")),
        ):
            with self.assertRaisesRegex(NotImplementedError, words):
                call()
        (first,) = torch.autograd.grad(mine(q, k, v).sum(), (q,), create_graph=True)
        with self.assertRaisesRegex(NotImplementedError, "second derivatives are not supported"):
            first.sum().backward()


class Operators(unittest.TestCase):
    def test_torch_s_own_checks_of_operators(self):
        mine, gated = trained("mean"), trained("gated")
        q, k, v = leaves(mine, 12)
        gate = torch.from_numpy(log_gates(12)).requires_grad_()
        ops, checks = torch.ops.fpac, ("test_schema", "test_autograd_registration", "test_faketensor")
        state = mine.new_state(k)
        for arguments in (
            (mine.key, q, k, v, None, [], None, -1, False, None, 0, None, None),
            (mine.key, q, k, v, None, [], state, 1, True, None, 0, None, None),
            (gated.key, q, k, v, gate, [], None, 0, True, None, 0, None, None),
            (mine.key, q[:1], k[:1], v[:1], None, [], None, 1, True, torch.tensor([0, 5, 5, 12]), 7, None, None),
        ):
            torch.library.opcheck(ops.forward_saving.default, arguments, test_utils=checks)
        q, k, v = (x.detach() for x in (q, k, v))
        o, den, _ = ops.forward_saving(mine.key, q, k, v, None, [], None, -1, False, None, 0, None, None)
        needs = [True, False, True, False, False]
        arguments = (mine.key, q, k, v, None, [], None, o, den, o, None, -1, needs, None, 0, None, None)
        torch.library.opcheck(ops.backward.default, arguments, test_utils=("test_schema", "test_faketensor"))
        packed = [x[:1] for x in (q, k, v)]
        offsets = torch.tensor([0, 5, 5, 12])
        o, den, _ = ops.forward_saving(mine.key, *packed, None, [], None, 1, False, offsets, 7, None, None)
        needs = [True, True, True, False, False]
        arguments = (mine.key, *packed, None, [], None, o, den, o, None, 1, needs, offsets, 7, None, None)
        torch.library.opcheck(ops.backward.default, arguments, test_utils=("test_schema", "test_faketensor"))

    def test_a_graph_without_a_break(self):
        mine = trained("mean")
        torch._dynamo.reset()
        compiled = torch.compile(lambda q, k, v: mine(q * 1.5, k, v) + 1, fullgraph=True, backend="aot_eager")
        ours, theirs = leaves(mine, 20), leaves(mine, 20)
        compiled(*ours).square().sum().backward()
        (mine(theirs[0] * 1.5, *theirs[1:]) + 1).square().sum().backward()
        for a, b in zip(ours, theirs):
            self.assertTrue(torch.equal(a.grad, b.grad))


if __name__ == "__main__":
    unittest.main()
