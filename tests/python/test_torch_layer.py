"""Layers with torch: tensors, gradients by autograd, and compilers."""

from __future__ import annotations

import unittest

from support import np  # noqa: F401  which skips the file where NumPy is missing

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

from support import log_gates
from test_layer import HEADS, LENGTH, WEIGHTS, opened, operands


def tensors():
    q, k, v = (torch.from_numpy(array) for array in operands())
    weights = [torch.from_numpy(array) for array in WEIGHTS.values()]
    return q, k, v, torch.from_numpy(log_gates(LENGTH, heads=HEADS)), weights


class TorchLayers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.layer = opened(backward=True)

    def test_tensors_give_what_arrays_give(self):
        q, k, v, gate, weights = tensors()
        o, state = self.layer(q, k, v, gate, weights, return_state=True)
        wanted, its = self.layer(*operands(), gate.numpy(), WEIGHTS, return_state=True)
        self.assertTrue(torch.equal(o, torch.from_numpy(wanted)))
        self.assertTrue(torch.equal(state, torch.from_numpy(its)))

    def test_autograd_has_the_gradients(self):
        q, k, v, gate, weights = tensors()
        given = [x.requires_grad_() for x in (q, k, v, gate, *weights)]
        o = self.layer(q, k, v, gate, weights)
        found = torch.autograd.grad(o.square().sum(), given)
        plain, saved = self.layer(*operands(), gate.detach().numpy(), WEIGHTS, return_saved=True)
        wanted = self.layer.backward(saved, 2 * plain)
        for x, name in zip(found, ("q", "k", "v", "log_gate", "trained.A", "trained@2.A")):
            self.assertTrue(torch.equal(x, torch.from_numpy(wanted[name])), name)

    def test_a_graph_has_the_layer_in_it(self):
        q, k, v, gate, weights = tensors()

        def model(q, k, v, gate, w1, w2):
            o, state = self.layer(q, k, v, gate, [w1, w2], return_state=True)
            return 2 * o, state

        traced = torch.compile(model, backend="eager", fullgraph=True)
        for x, y in zip(traced(q, k, v, gate, *weights), model(q, k, v, gate, *weights)):
            self.assertTrue(torch.equal(x, y))


if __name__ == "__main__":
    unittest.main()
