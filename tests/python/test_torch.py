"""torch's tensors on the CPU, operators, torch.compile, and gradients where a head has none."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import unittest

from support import SPEC, TOP, fpac, head, log_gates, numbers, operands, same_bits

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

import fpac.torch  # noqa: E402

NAMES = {"mean": torch.float32, "half": torch.float16, "brain": torch.bfloat16}


def tensors(mine, length, dtype=torch.float32, **more):
    """q, k, v for a head."""
    return [torch.from_numpy(array).to(dtype) for array in operands(mine.explain(), length, **more)]


class Tensors(unittest.TestCase):
    def test_the_bits_are_those_of_numpy_s_arrays(self):
        mine = head("mean")
        o, state = mine(*tensors(mine, 40), return_state=True)
        expected, expected_state = mine(*operands(mine.explain(), 40), return_state=True)
        self.assertTrue(same_bits(o.numpy(), expected) and same_bits(state.numpy(), expected_state))

    def test_the_short_way_of_plain_calls_gives_the_same_whatever_the_layouts(self):
        """o lies like q, like v, or like neither; q and v in any order of axes; a head and its operator."""
        for name, query_heads in (("mean", 2), ("mean", 4), ("plain", 2), ("plain", 4)):
            mine = head(name)
            q, k, v = tensors(mine, 12, query_heads=query_heads)
            expected = torch.from_numpy(mine(q.numpy(), k.numpy(), v.numpy()))
            turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
            for arrays in ((q, k, v), turned, (turned[0], k, v), (q, k, turned[2])):
                for o in (mine(*arrays), torch.ops.fpac.forward(mine.key, *arrays, None, [], None, -1, 0)):
                    self.assertTrue(torch.equal(o, expected) and o.is_contiguous())
                    self.assertNotIn(o.data_ptr(), [x.data_ptr() for x in arrays])
            wanted = mine.new_state(k)
            first = mine(q[:, :1], k[:, :1], v[:, :1], state=wanted, return_state=True, form="recurrent")
            for step in (mine.step, lambda *a, key=mine.key: torch.ops.fpac.step(key, *a, None, [])):
                state = mine.new_state(k)
                o = step(q[:, :1], k[:, :1], v[:, :1], state)
                self.assertTrue(torch.equal(o, first[0]) and torch.equal(state, first[1]))

    def test_a_call_is_never_taken_for_the_one_before(self):
        """Each pair of calls: the second differs from the first in one thing, and gives what a call of its own does."""
        q, k, v = tensors(head("mean"), 12)
        others = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
        longer = tensors(head("mean"), 13)
        calls = [(q, k, v), (others[0], k, v), (q, others[1], v), (q, k, others[2]), tuple(longer)]
        calls += [
            (q, k, torch.stack([v, v], -1)[..., 0].contiguous()),
            (q[:1], k[:1], v[:1]),
            (q[:, 3:], k[:, 3:], v[:, 3:]),
        ]
        alone = [torch.from_numpy(head("mean")(*(x.numpy() for x in call))) for call in calls]
        mine = head("mean")
        for first in calls:
            for second, expected in zip(calls, alone):
                mine(*first)
                self.assertTrue(torch.equal(mine(*second), expected))
        mine(q, k, v)
        for wrong in (v.double(), v.half(), v[..., :-1], v[:, :-1], v.to("meta"), torch.stack([v, v], -1)[..., 0]):
            with self.assertRaises(fpac.Error):
                mine(q, k, wrong)
        self.assertTrue(torch.equal(mine(q, k, v), alone[0]))

    def test_what_torch_negates_when_it_is_read_is_refused_and_not_taken_for_what_lies_in_memory(self):
        mine = head("mean")
        q, k, v = tensors(mine, 5)
        state = mine.new_state(k)
        negative = torch._neg_view(k)
        for arrays in ((negative, k, v), (q, negative, v), (q, k, negative)):
            for call in (mine, lambda *a: mine(*a, return_state=True), lambda *a: mine.step(*a, state)):
                call(q, k, v)
                with self.assertRaisesRegex(fpac.ArgumentTypeError, "resolve_neg"):
                    call(*arrays)
        with self.assertRaisesRegex(fpac.ArgumentTypeError, "resolve_neg"):
            mine.step(q, k, v, torch._neg_view(state))
        expected = mine(q, -k, v)
        self.assertTrue(torch.equal(mine(q, negative.resolve_neg(), v), expected))
        with self.assertRaisesRegex(fpac.ArgumentTypeError, "k: is torch.sparse_coo.*to_dense"):
            mine(q, k.to_sparse(), v)
        self.assertTrue(torch.equal(torch.ops.fpac.forward(mine.key, q, negative, v, None, [], None, -1, 0), expected))

    def test_a_closed_head_is_refused_after_calls_that_were_alike(self):
        mine = fpac.head(SPEC, "mean")
        arrays = tensors(mine, 5)
        for _ in range(3):
            mine(*arrays)
        mine.close()
        with self.assertRaisesRegex(fpac.InvalidError, "is closed"):
            mine(*arrays)

    def test_every_dtype(self):
        for name, dtype in NAMES.items():
            mine = head(name)
            q, k, v = tensors(mine, 40, dtype)
            o, state = mine(q, k, v, return_state=True)
            self.assertEqual((o.dtype, state.dtype), (dtype, torch.float32))
            exact = head("mean")(q.float(), k.float(), v.float())
            torch.testing.assert_close(o.float(), exact, rtol=2e-2, atol=2e-2)
            again, end = mine(q[:, :15], k[:, :15], v[:, :15], return_state=True)
            rest = mine(q[:, 15:], k[:, 15:], v[:, 15:], state=end)
            torch.testing.assert_close(torch.cat([again, rest], 1).float(), o.float(), rtol=2e-2, atol=2e-2)

    def test_steps_gates_and_weights(self):
        mine = head("gated")
        q, k, v = tensors(mine, 6)
        gate = torch.from_numpy(log_gates(6))
        state = mine.new_state(k)
        steps = [mine.step(*(x[:, t : t + 1] for x in (q, k, v)), state, gate[:, t : t + 1]) for t in range(6)]
        whole, end = mine(q, k, v, gate, return_state=True, form="recurrent")
        self.assertTrue(torch.equal(torch.cat(steps, 1), whole) and torch.equal(state, end))
        trained = head("trained")
        arrays, a, b = operands(trained.explain(), 6), numbers(5, 2, 3, 8), numbers(6, 5, 8)
        o = trained(*map(torch.from_numpy, arrays), weights={"A": torch.from_numpy(a), "B": torch.from_numpy(b)})
        self.assertTrue(same_bits(o.numpy(), trained(*arrays, weights=[a, b])))

    def test_what_is_refused(self):
        mine = head("mean")
        q, k, v = tensors(mine, 6)
        for kind, words, arrays in (
            (TypeError, "q: is torch.float64", (q.double(), k, v)),
            (TypeError, "k: is f16, but mean takes f32", (q, k.half(), v)),
            (TypeError, "q: is a ndarray, but the others are torch tensors", (q.numpy(), k, v)),
            (TypeError, "k: lies on meta", (q, k.to("meta"), v)),
            (ValueError, "q: axis 3 has the stride", (q.transpose(1, 3).contiguous().transpose(1, 3), k, v)),
        ):
            with self.assertRaises(kind) as caught:
                mine(*arrays)
            self.assertIn(words, str(caught.exception))

    def test_gradients_of_a_head_without_them_are_refused(self):
        mine = head("mean")
        q, k, v = tensors(mine, 6)
        expected = mine(q, k, v)
        leaf = q.clone().requires_grad_()
        for wanting in (leaf, leaf * 1):
            for call, why in (
                (mine, "mean was opened without gradients (backward=True opens it with them)"),
                (
                    lambda *t: torch.ops.fpac.forward(mine.key, *t, None, [], None, -1, 0),
                    "this operator has no gradients",
                ),
            ):
                with self.assertRaises(NotImplementedError) as caught:
                    call(wanting, k, v)
                self.assertEqual(
                    str(caught.exception),
                    f"q: requires grad, but {why}: detach the inputs or use torch.no_grad()",
                )
                with torch.no_grad():
                    self.assertTrue(torch.equal(call(wanting, k, v), expected))
                with torch.inference_mode():
                    self.assertTrue(torch.equal(call(wanting, k, v), expected))
        trained = head("trained")
        weights = [torch.nn.Parameter(torch.from_numpy(numbers(5, 2, 3, 8))), torch.from_numpy(numbers(6, 5, 8))]
        with self.assertRaisesRegex(NotImplementedError, r"weights\[0\]: requires grad"):
            trained(*tensors(trained, 6), weights=weights)

    def test_torch_is_enough_without_numpy(self):
        ask = """
import sys, warnings
sys.modules["numpy"] = None
warnings.simplefilter("ignore")
import torch, fpac
head = fpac.head("return head { name = 'only', d = 8, dv = 8, terms = linear {} }")
print(head(*3 * [torch.ones(1, 3, 1, 8)])[0, :, 0, 0].tolist())
"""
        environment = {**os.environ, "PYTHONPATH": str(TOP / "python")}
        done = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), "[8.0, 16.0, 24.0]", done.stderr)

    def test_threads_share_a_head(self):
        mine = head("mean")
        arrays = tensors(mine, 100)
        expected, wrong = mine(*arrays), []

        def work():
            for _ in range(20):
                if not torch.equal(mine(*arrays), expected):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Operators(unittest.TestCase):
    def setUp(self):
        self.head = head("mean")
        self.q, self.k, self.v = tensors(self.head, 20)
        self.state = self.head.new_state(self.k).normal_()

    def test_operators_give_what_calls_give(self):
        q, k, v, key = self.q, self.k, self.v, self.head.key
        ops = torch.ops.fpac
        self.assertTrue(torch.equal(ops.forward(key, q, k, v, None, [], None, -1, 0), self.head(q, k, v)))
        o, state = ops.forward_state(key, q, k, v, None, [], self.state, 1, 0)
        expected, end = self.head(q, k, v, state=self.state, return_state=True, form="chunked")
        self.assertTrue(torch.equal(o, expected) and torch.equal(state, end))
        one, two = self.state.clone(), self.state.clone()
        q, k, v = q[:, :1], k[:, :1], v[:, :1]
        self.assertTrue(torch.equal(ops.step(key, q, k, v, one, None, []), self.head.step(q, k, v, two)))
        self.assertTrue(torch.equal(one, two))
        ops.update(key, k, v, one, None, [])
        self.head.update(k, v, two)
        self.assertTrue(torch.equal(one, two))

    def test_torch_s_own_checks_of_operators(self):
        q, k, v, key = self.q, self.k, self.v, self.head.key
        ops, checks = torch.ops.fpac, ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
        for operator, arguments in (
            (ops.forward, (key, q, k, v, None, [], None, -1, 0)),
            (ops.forward, (key, q, k, v, None, [], self.state, 0, 0)),
            (ops.forward_state, (key, q, k, v, None, [], None, 1, 0)),
            (ops.forward_state, (key, q, k, v, None, [], self.state, 2, 0)),
            (ops.step, (key, q[:, :1], k[:, :1], v[:, :1], self.state.clone(), None, [])),
            (ops.update, (key, k, v, self.state.clone(), None, [])),
        ):
            torch.library.opcheck(operator.default, arguments, test_utils=checks)

    def test_fake_tensors_have_the_shapes_of_results(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        real = self.head(self.q, self.k, self.v, return_state=True)
        with FakeTensorMode() as mode:
            fake = self.head(*map(mode.from_tensor, (self.q, self.k, self.v)), return_state=True)
        for a, b in zip(fake, real):
            self.assertEqual((a.shape, a.stride(), a.dtype), (b.shape, b.stride(), b.dtype))

    def test_a_key_of_no_open_head_is_refused(self):
        mine = fpac.head(SPEC, "mean")
        key = mine.key
        self.assertNotEqual(key, self.head.key)
        del mine
        with self.assertRaisesRegex(fpac.InvalidError, "is not the key of a head that is open in this process"):
            torch.ops.fpac.forward(key, self.q, self.k, self.v, None, [], None, -1, 0)


class Compiled(unittest.TestCase):
    backends = ("aot_eager",)  # inductor compiles C++: seconds a graph; tests/python/test_torch_cuda.py has it

    def setUp(self):
        torch._dynamo.reset()

    def check(self, function, *arguments):
        for backend in self.backends:
            compiled = torch.compile(function, fullgraph=True, backend=backend)
            copies = [[x.clone() for x in arguments] for _ in range(2)]
            results, expected = compiled(*copies[0]), function(*copies[1])
            for a, b in zip([*results, *copies[0]], [*expected, *copies[1]]):
                self.assertTrue(torch.equal(a, b))

    def test_a_forward_in_a_graph_without_a_break(self):
        mine = head("mean")
        self.check(lambda q, k, v: (mine(q * 1.5, k, v) + 1,), *tensors(mine, 20))

    def test_lengths_that_change(self):
        mine = head("mean")
        compiled = torch.compile(lambda q, k, v: mine(q, k, v) * 2, fullgraph=True, backend="aot_eager", dynamic=True)
        for length in (5, 20, 33):
            arrays = tensors(mine, length)
            self.assertTrue(torch.equal(compiled(*arrays), mine(*arrays) * 2))

    def test_a_state_that_is_carried(self):
        mine = head("gated")
        arrays = [*tensors(mine, 20), torch.from_numpy(log_gates(20))]

        def both(q, k, v, gate):
            o, state = mine(q, k, v, gate, return_state=True)
            return mine(q, k, v, gate, state=state, form="chunked"), o, state

        self.check(both, *arrays)

    def test_a_state_that_is_updated_in_place(self):
        mine = head("mean")
        q, k, v = tensors(mine, 1)

        def step(q, k, v, state):
            return (mine.step(q, k, v, state) * 2,)

        self.check(step, q, k, v, mine.new_state(k))

        def begin(q, k, v):
            state = mine.new_state(k)
            return mine.step(q, k, v, state), state

        self.check(begin, q, k, v)

        def update(k, v, state):
            mine.update(k, v, state)
            return (state * 2,)

        self.check(update, k, v, mine.new_state(k))

    def test_weights_by_name(self):
        mine = head("trained")
        weights = [torch.from_numpy(numbers(5, 2, 3, 8)), torch.from_numpy(numbers(6, 5, 8))]
        self.check(lambda q, k, v, a, b: (mine(q, k, v, weights={"A": a, "B": b}),), *tensors(mine, 20), *weights)

    def test_a_module_with_a_head(self):
        class Attention(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.head, self.project = head("mean"), torch.nn.Linear(16, 48)

            def forward(self, x):
                q, k, v = self.project(x).unflatten(-1, (2, 24)).split(8, -1)
                return self.head(q, k, v).flatten(-2)

        torch.manual_seed(0)
        model = Attention()
        x = torch.randn(2, 20, 16)
        with torch.no_grad():
            expected = model(x)
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
            self.assertTrue(torch.equal(compiled(x), expected))
        with self.assertRaisesRegex(NotImplementedError, "was opened without gradients"):
            model(x)

    def test_gradients_are_refused_while_compiling(self):
        mine = head("mean")
        q, k, v = tensors(mine, 6)
        compiled = torch.compile(lambda q, k, v: mine(q * 2, k, v), fullgraph=True, backend="aot_eager")
        # torch 2.11 tells of the class, without what it says
        with self.assertRaisesRegex(Exception, "was opened without gradients .*: detach the inputs|UnsupportedError"):
            compiled(q.requires_grad_(), k, v)


if __name__ == "__main__":
    unittest.main()
