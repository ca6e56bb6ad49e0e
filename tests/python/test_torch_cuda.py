"""torch's and CuPy's arrays on a GPU: streams, graphs, torch.compile, threads. docs/adding.md says how to run it on a
machine that has a GPU and little else; FPA_REQUIRE_CUDA=1: no GPU is a failure."""

from __future__ import annotations

import functools
import gc
import os
import threading
import unittest

from support import fpac

try:
    import torch

    REASON = "" if torch.cuda.is_available() else "torch sees no GPU"
except ImportError:
    REASON = "torch is not installed"
if REASON:
    if os.environ.get("FPA_REQUIRE_CUDA") == "1":
        raise RuntimeError(REASON)
    raise unittest.SkipTest(REASON)

import fpac.torch  # noqa: E402

TARGET = os.environ.get("FPA_TEST_TARGET", "cuda")

GPU_SPEC = """
local square = power { degree = 2 }
local function mean(name, dtype, gate)
  return head { name = name, d = 64, dv = 64, scale = 1 / 8, dtype = dtype, normalize = "sum", gate = gate,
                terms = square }
end
return {
  mean("mean_f32", "f32"), mean("mean_bf16", "bf16"), mean("gated_f16", "f16", true), mean("gated_f32", "f32", true),
  head { name = "trained", d = 64, dv = 64, scale = 1 / 8, dtype = "bf16",
         terms = term { trainable { name = "A", rows = 16 }, trainable { name = "B", rows = 16 } } },
}
"""
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
TOLERANCE = {"f32": 1e-3, "f16": 2e-2, "bf16": 5e-2}


@functools.cache
def head(name, target=TARGET):
    return fpac.head(GPU_SPEC, name, target, file="gpu.lua")


@functools.cache
def trained(name, target=TARGET):
    return fpac.head(GPU_SPEC, name, target, file="gpu.lua", backward=True)


def tensors(mine, length, batch=2, heads=4, device="cuda", seed=0):
    """q, k, v, and log-gates for a gated head. q.k is far from 0: no quotient of sums that nearly vanish."""
    about = mine.explain()
    source = torch.Generator().manual_seed(seed)
    q, k = (1 + torch.randn(batch, length, heads, about.d, generator=source) / 4 for _ in range(2))
    v = torch.randn(batch, length, heads, about.dv, generator=source)
    made = [tensor.to(DTYPES[about.dtype]) for tensor in (q, k, v)]
    if about.gate:
        made.append(-torch.rand(batch, length, heads, generator=source) / 8)
    return [tensor.to(device) for tensor in made]


class Gradients(unittest.TestCase):
    def gradients(self, mine, arrays, weights):
        leaves = [x.detach().clone().requires_grad_() for x in (*arrays, *weights.values())]
        named = dict(zip(weights, leaves[len(arrays) :]))
        source = torch.Generator().manual_seed(7)
        o = mine(*leaves[: len(arrays)], weights=named) if named else mine(*leaves)
        d_o = torch.randn(o.shape, generator=source).to(o.dtype).to(o.device)
        return torch.autograd.grad(o, leaves, d_o)

    def test_they_agree_with_those_of_the_processor(self):
        # of one normalised token o is v: gradients of q and k are what roundings leave of terms that cancel
        cases = (
            ("mean_f32", 1e-3, 1e-3),
            ("gated_f32", 1e-3, 1e-3),
            ("mean_bf16", 0.1, 0.05),
            ("trained", 0.05, 1e-3),
        )
        for name, limit, left in cases:
            gpu, cpu = trained(name), trained(name, "c")
            source = torch.Generator().manual_seed(1)
            weights = {w: torch.randn(4, 16, 64, generator=source) / 8 for w in gpu.weight_names}
            for length in (1, 100, 1000):
                arrays = tensors(gpu, length)
                here = {w: matrix.cuda() for w, matrix in weights.items()}
                ours = self.gradients(gpu, arrays, here)
                theirs = self.gradients(cpu, [x.cpu() for x in arrays], weights)
                again = self.gradients(gpu, arrays, here)
                for i, (a, b, c) in enumerate(zip(ours, theirs, again)):
                    with self.subTest(name=name, length=length, gradient=i):
                        self.assertTrue(a.is_cuda and torch.equal(a, c), "the same bits again")
                        off = float((a.cpu().float() - b.float()).norm())
                        self.assertLessEqual(off, limit * float(b.float().norm()) + left)

    def test_they_are_computed_in_the_current_stream(self):
        mine, side = trained("mean_bf16"), torch.cuda.Stream()
        arrays = tensors(mine, 300)
        expected = self.gradients(mine, arrays, {})
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            found = self.gradients(mine, arrays, {})
        side.synchronize()
        for a, b in zip(found, expected):
            self.assertTrue(torch.equal(a, b))


class Values(unittest.TestCase):
    def test_heads_agree_with_those_of_the_processor(self):
        for name in ("mean_f32", "mean_bf16", "gated_f16"):
            gpu, cpu = head(name), head(name, "c")
            limit = TOLERANCE[gpu.explain().dtype]
            for length in (0, 1, 100, gpu.explain().chunk + 1, 1000):
                arrays = tensors(gpu, length)
                o, state = gpu(*arrays, return_state=True)
                self.assertTrue(o.is_cuda and state.is_cuda)
                expected, _ = cpu(*(array.cpu() for array in arrays), return_state=True)
                with self.subTest(name=name, length=length):
                    torch.testing.assert_close(o.cpu().float(), expected.float(), rtol=limit, atol=limit)
                self.assertEqual(state.shape, (2, 4, gpu.explain().state_elements))
                self.assertTrue(torch.equal(gpu(*arrays), gpu(*arrays)), "the same bits again")

    def test_split_and_steps(self):
        mine = head("gated_f32")
        arrays = tensors(mine, 600)
        whole, last = mine(*arrays, return_state=True)
        _, state = mine(*(x[:, :590] for x in arrays), return_state=True)
        steps = []
        for t in range(590, 600):
            q, k, v, gate = (x[:, t : t + 1] for x in arrays)
            steps.append(mine.step(q, k, v, state, gate))
        torch.testing.assert_close(torch.cat(steps, 1), whole[:, 590:], rtol=2e-3, atol=2e-3)
        torch.testing.assert_close(state, last, rtol=2e-3, atol=2e-3)

    def test_recent_tokens_beside_the_state(self):
        mine = head("mean_f32")
        q, k, v = tensors(mine, 40)
        whole = mine(q, k, v)
        _, state = mine(q[:, :32], k[:, :32], v[:, :32], return_state=True)
        for i in range(8):
            o = mine(q[:, 32 + i : 33 + i], k[:, 32 : 33 + i], v[:, 32 : 33 + i], state=state, recent=i)
            torch.testing.assert_close(o, whole[:, 32 + i : 33 + i], rtol=2e-3, atol=2e-3)
        mine.update(k[:, 32:], v[:, 32:], state)
        torch.testing.assert_close(state, mine(q, k, v, return_state=True)[1], rtol=2e-3, atol=2e-3)

    def test_weights_and_grouped_queries(self):
        mine = head("trained")
        q, k, v = tensors(mine, 200)
        weights = {name: torch.randn(4, 16, 64, device="cuda") / 8 for name in mine.weight_names}
        o = mine(q, k, v, weights=weights)
        expected = head("trained", "c")(q.cpu(), k.cpu(), v.cpu(), weights={n: w.cpu() for n, w in weights.items()})
        scale = expected.float().abs().max().item()
        torch.testing.assert_close(o.cpu().float() / scale, expected.float() / scale, rtol=5e-2, atol=2e-2)
        grouped = head("mean_bf16")
        q, k, v = tensors(grouped, 200)
        shared = grouped(q, k[:, :, :2], v[:, :, :2])
        repeated = grouped(q, k[:, :, :2].repeat_interleave(2, 2), v[:, :, :2].repeat_interleave(2, 2))
        torch.testing.assert_close(shared.float(), repeated.float(), rtol=2e-2, atol=2e-2)

    def test_what_is_refused(self):
        mine = head("mean_f32")
        q, k, v = tensors(mine, 10)
        for kind, words, arrays in (
            (ValueError, "lies on the CPU, but this kernel computes on CUDA device 0", (q.cpu(), k.cpu(), v.cpu())),
            (ValueError, "k: lies on the CPU", (q, k.cpu(), v)),
            (TypeError, "q: is f16, but mean_f32 takes f32", (q.half(), k, v)),
            (NotImplementedError, "was opened without gradients", (q.clone().requires_grad_(), k, v)),
        ):
            with self.assertRaises(kind) as caught:
                mine(*arrays)
            self.assertIn(words, str(caught.exception))
        with self.assertRaisesRegex(ValueError, "lies on CUDA device 0, but this kernel computes on the CPU"):
            head("mean_f32", "c")(q, k, v)
        with self.assertRaisesRegex(fpac.Error, "99"):
            fpac.head(GPU_SPEC, "mean_f32", TARGET, device=99)


class Streams(unittest.TestCase):
    def test_a_call_is_launched_into_the_current_stream(self):
        mine = head("mean_f32")
        arrays = tensors(mine, 300)
        expected = mine(*arrays)
        late = [torch.zeros_like(x) for x in arrays]
        mine(*late)  # prepared, and its memory allocated
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            mine(*late)
            torch.cuda._sleep(200_000_000)  # a tenth of a second
            for there, here in zip(late, arrays):
                there.copy_(here)
            o = mine(*late)
            self.assertFalse(side.query(), "the call did not wait")
        self.assertTrue(torch.cuda.default_stream().query(), "nothing went to another stream")
        side.synchronize()
        self.assertTrue(torch.equal(o, expected))

    def test_threads_with_streams_of_their_own(self):
        """A new thread has no current context before its first call."""
        mine = head("mean_bf16")
        arrays = [tensors(mine, 500, seed=seed) for seed in range(4)]
        expected = [mine(*a) for a in arrays]
        torch.cuda.synchronize()
        results, errors = [None] * 4, []

        def work(i):
            try:
                if i == 0:
                    results[i] = mine(*arrays[i])  # the first that this thread does with the GPU
                else:
                    with torch.cuda.stream(torch.cuda.Stream()):
                        for _ in range(10):
                            results[i] = mine(*arrays[i])
                        torch.cuda.current_stream().synchronize()
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        torch.cuda.synchronize()
        self.assertEqual(errors, [])
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(results, expected)))

    def test_memory_is_torch_s_and_is_given_back(self):
        mine = fpac.head(GPU_SPEC, "mean_f32", TARGET)
        arrays = tensors(mine, 4000)
        mine(*arrays, form="chunked")
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        o = mine(*arrays, form="chunked")
        size = o.numel() * o.element_size()
        (workspace,) = [prepared.size for free in mine._calls.free.values() for prepared in free]
        self.assertGreaterEqual(torch.cuda.max_memory_allocated() - before, size + workspace)
        for _ in range(20):
            o = mine(*arrays, form="chunked")
        self.assertLessEqual(torch.cuda.memory_allocated() - before, size + 4096)

    def test_a_head_that_nobody_holds_is_unloaded(self):
        mine = fpac.head(GPU_SPEC, "mean_f32", TARGET)
        arrays = tensors(mine, 100)
        mine(*arrays)
        expected = head("mean_f32")(*arrays)
        torch.cuda.synchronize()
        torch.cuda._sleep(200_000_000)
        o = mine(*arrays)
        del mine  # while its kernel waits
        gc.collect()
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(o, expected))
        self.assertTrue(torch.equal(head("mean_f32")(*arrays), expected))


class Graphs(unittest.TestCase):
    def capture(self, function):
        """A graph of one call, after one outside of it, and what the call gave."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            function()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = function()
        return graph, result

    def test_a_forward(self):
        for name, length in (("mean_f32", 100), ("mean_bf16", 3000)):
            mine = head(name)
            inputs = tensors(mine, length)
            graph, o = self.capture(lambda mine=mine, inputs=inputs: mine(*inputs))
            for seed in (1, 2):
                new = tensors(mine, length, seed=seed)
                for there, here in zip(inputs, new):
                    there.copy_(here)
                graph.replay()
                torch.cuda.synchronize()
                self.assertTrue(torch.equal(o, mine(*new)), f"{name} {seed}")

    def test_decoding(self):
        mine = head("gated_f32")
        sequence = tensors(mine, 12)
        inputs = [x[:, :1].clone() for x in sequence]
        state = mine.new_state(inputs[1])
        graph, o = self.capture(lambda: mine.step(*inputs[:3], state, inputs[3]))
        state.zero_()
        other = torch.zeros_like(state)
        for t in range(12):
            now = [x[:, t : t + 1] for x in sequence]
            for there, here in zip(inputs, now):
                there.copy_(here)
            graph.replay()
            expected = mine.step(*now[:3], other, now[3])
            torch.cuda.synchronize()
            self.assertTrue(torch.equal(o, expected) and torch.equal(state, other), f"token {t}")


class Compiled(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def test_operators(self):
        mine = head("mean_f32")
        q, k, v = tensors(mine, 100)
        state = mine.new_state(k)
        ops, checks = torch.ops.fpac, ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
        one = [x[:, :1] for x in (q, k, v)]
        torch.library.opcheck(ops.forward.default, (mine.key, q, k, v, None, [], None, -1, 0), test_utils=checks)
        torch.library.opcheck(ops.forward_state.default, (mine.key, q, k, v, None, [], state, 1, 0), test_utils=checks)
        torch.library.opcheck(ops.step.default, (mine.key, *one, state, None, []), test_utils=checks)

    def test_inductor(self):
        for mode in (None, "reduce-overhead"):
            for name in ("mean_f32", "mean_bf16"):
                mine = head(name)

                def double(q, k, v, mine=mine):
                    return mine(q * 2, k, v) + 1

                compiled = torch.compile(double, fullgraph=True, mode=mode)
                for seed in range(4):  # the first calls of reduce-overhead record, later ones replay
                    q, k, v = tensors(mine, 300, seed=seed)
                    o = compiled(q, k, v).clone()
                    limit = TOLERANCE[mine.explain().dtype]
                    torch.testing.assert_close(o, double(q, k, v), rtol=limit, atol=limit)

    def test_a_state_in_a_compiled_loop(self):
        mine = head("mean_f32")
        sequence = tensors(mine, 6)

        def step(q, k, v, state):
            return mine.step(q * 1, k, v, state) * 2

        compiled = torch.compile(step, fullgraph=True)
        one, two = mine.new_state(sequence[1]), mine.new_state(sequence[1])
        for t in range(6):
            now = [x[:, t : t + 1].contiguous() for x in sequence]
            torch.testing.assert_close(compiled(*now, one), step(*now, two), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-5)


class Cupy(unittest.TestCase):
    def test_cupy_s_arrays_in_its_current_stream(self):
        try:
            import cupy
        except ImportError:
            self.skipTest("CuPy is not installed")
        mine = head("gated_f32")
        arrays = tensors(mine, 200)
        torch.cuda.synchronize()
        expected, last = mine(*arrays, return_state=True)
        torch.cuda.synchronize()
        given = [cupy.from_dlpack(x) for x in arrays]
        with cupy.cuda.Stream(non_blocking=True) as stream:
            o, state = mine(*given, return_state=True)
            stream.synchronize()
        self.assertIsInstance(o, cupy.ndarray)
        self.assertTrue(torch.equal(torch.from_dlpack(o), expected) and torch.equal(torch.from_dlpack(state), last))
        now = [x[:, :1] for x in given]
        again = mine.new_state(now[1])
        o = mine.step(*now[:3], again, now[3])
        cupy.cuda.get_current_stream().synchronize()
        torch.testing.assert_close(torch.from_dlpack(o), expected[:, :1], rtol=2e-3, atol=2e-3)


if __name__ == "__main__":
    unittest.main()
