"""FPAttention on a GPU: results, gradients, torch.compile, autocast, decoding in a CUDA graph, moves from one device
to the other. Run as test_torch_cuda.py; FPA_REQUIRE_CUDA=1: no GPU is a failure."""

from __future__ import annotations

import os
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

import fpac.nn  # noqa: E402

SPEC = """
local square = power { degree = 2 }
return {
  head { name = "mean", d = 32, dv = 32, scale = 1 / 8, normalize = "one_plus_sum", terms = square },
  head { name = "gated", d = 32, dv = 32, dtype = "bf16", scale = 1 / 8, gate = true, terms = linear {} },
  head { name = "learned", d = 32, dv = 32, dtype = "bf16", scale = 1 / 8, normalize = "one_plus_sum",
         terms = term { trainable { name = "A", rows = 8 }, trainable { name = "A", rows = 8 } } },
  head { name = "waves", d = 32, dv = 32, dtype = "bf16", positions = 1, key_mask = true, normalize = "sum",
         terms = fourier { map = softplus } },
}
"""
NAMES = ("mean", "gated", "learned")
WIDTH = 64


def attention(name, device="cuda", **options):
    torch.manual_seed(3)
    return fpac.nn.FPAttention(WIDTH, 4, SPEC, name, key_heads=2, **options).to(device)


def tokens(length, batch=2, device="cuda"):
    return torch.randn(batch, length, WIDTH, generator=torch.Generator().manual_seed(5)).to(device)


class OnAGpu(unittest.TestCase):
    def near(self, ours, theirs, limit):
        ours, theirs = ours.detach().float().cpu(), theirs.detach().float().cpu()
        self.assertLess((ours - theirs).norm().item(), limit * theirs.norm().item() + 1e-6)

    def test_it_agrees_with_the_processor(self):
        for name, limit in (("mean", 1e-3), ("gated", 0.05), ("learned", 0.05)):
            gpu, cpu = attention(name), attention(name, "cpu")
            self.assertTrue(gpu.head.explain().target.startswith("cuda"))
            ours, theirs = gpu(tokens(300)), cpu(tokens(300, device="cpu"))
            self.near(ours, theirs, limit)
            ours.square().mean().backward()
            theirs.square().mean().backward()
            for a, b in zip(gpu.parameters(), cpu.parameters()):
                self.near(a.grad, b.grad, 2 * limit)

    def test_positions_and_a_mask_of_keys(self):
        gpu, cpu = (attention("waves", device, backward=False) for device in ("cuda", "cpu"))
        self.assertEqual(gpu.head.explain().weight_kinds, ("angle", "phase", "amplitude"))
        x, positions = tokens(300, device="cpu"), torch.arange(300).repeat(2, 1)
        mask = positions >= torch.tensor([[0], [70]])
        with torch.no_grad():
            whole = cpu(x, positions=positions, key_mask=mask)
            more = {"positions": positions.cuda(), "key_mask": mask.cuda()}
            y, state = gpu(x[:, :299].cuda(), return_state=True, **{name: t[:, :299] for name, t in more.items()})
            last = gpu.step(x[:, 299:].cuda(), state, **{name: t[:, 299:] for name, t in more.items()})
        self.near(torch.cat([y, last], 1), whole, 0.05)
        with self.assertRaisesRegex(fpac.InvalidError, "key_mask: lies on cpu, but x on cuda:0"):
            with torch.no_grad():
                gpu(x.cuda(), positions=positions.cuda(), key_mask=mask)

    def test_it_moves_there_and_back(self):
        module, x = attention("mean", "cpu"), tokens(70, device="cpu")
        before, first = module(x), module.head
        self.near(module.cuda()(x.cuda()), before, 1e-3)
        self.assertIsNot(module.head, first)
        self.assertTrue(torch.equal(module.cpu()(x), before))
        self.assertIs(module.head, first)
        with self.assertRaisesRegex(fpac.InvalidError, "x: lies on cuda:0, but the module on cpu"):
            module(x.cuda())

    def test_it_is_made_there(self):
        module = fpac.nn.FPAttention(WIDTH, 4, SPEC, "learned", device="cuda", dtype=torch.bfloat16)
        self.assertEqual((module.weight_A.device.type, module.weight_A.dtype), ("cuda", torch.bfloat16))
        self.assertEqual(module(tokens(40).bfloat16()).dtype, torch.bfloat16)

    def test_compiled_without_a_break(self):
        for name in NAMES:
            torch._dynamo.reset()
            module, found = attention(name), []
            for call in (module, torch.compile(module, fullgraph=True)):
                module.zero_grad()
                with torch.autocast("cuda", torch.bfloat16):
                    y = call(tokens(130))
                y.float().square().mean().backward()
                found.append([y, *(p.grad.clone() for p in module.parameters())])
            for a, b in zip(*found):
                self.near(a, b, 0.05)

    def test_steps_in_a_graph_are_the_whole(self):
        for name, limit in (("mean", 1e-3), ("gated", 0.05)):
            module, x = attention(name), tokens(20)
            with torch.no_grad():
                whole = module(x)
            state, token = module.new_state(2), x[:, :1].clone()
            for _ in range(3):  # memory is allocated, the call is prepared
                module.step(token, torch.zeros_like(state))
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = module.step(token, state)
            state.zero_()
            for t in range(20):
                token.copy_(x[:, t : t + 1])
                graph.replay()
                self.near(y, whole[:, t : t + 1], limit)

    def test_a_module_learns(self):
        module, teacher = attention("learned"), attention("learned")
        torch.nn.init.normal_(teacher.weight_A, std=0.5)
        optimizer, losses = torch.optim.Adam(module.parameters(), 0.01), []
        for step in range(100):
            x = torch.randn(8, 64, WIDTH, generator=torch.Generator().manual_seed(step)).cuda()
            with torch.autocast("cuda", torch.bfloat16):
                loss = (module(x) - teacher(x).detach()).float().square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 3)


if __name__ == "__main__":
    unittest.main()
