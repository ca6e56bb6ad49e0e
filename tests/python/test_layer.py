"""Layers of unlike heads: the bits of their heads, from the package."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

from support import COMMAND, fpac, log_gates, np, numbers, same_bits

SPEC = """
local mean = head { name = "mean", d = 8, dv = 4, scale = 1 / 4, normalize = "sum", terms = power { degree = 2 } }
local gated = head { name = "gated", d = 8, dv = 4, terms = linear {}, gate = true }
local trained = head { name = "trained", d = 8, dv = 4, terms = term { trainable { name = "A", rows = 3 } } }
return mean, layer { name = "mixed", heads = {
  { head = mean, count = 2 }, { head = gated, count = 3 },
  { head = trained, count = 1 }, { head = trained, count = 2 } } }
"""
HEADS, LENGTH = 8, 12


def opened(name="mixed", backward=False):
    return fpac.head(SPEC, name, file="layer.lua", backward=backward)


def operands(group=1):
    q = numbers(1, 2, LENGTH, HEADS * group, 8)
    return q, numbers(2, 2, LENGTH, HEADS, 8), numbers(3, 2, LENGTH, HEADS, 4)


WEIGHTS = {"trained.A": numbers(5, 1, 3, 8), "trained@2.A": numbers(6, 2, 3, 8)}


class Layers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.layer = opened()
        cls.heads = [opened(part.head.name) for part in cls.layer.explain().parts]

    def call_parts(self, q, k, v, gate, state, group=1):
        """o and the new state, head by head."""
        os, states = [], []
        for part, head in zip(self.layer.explain().parts, self.heads):
            keys = slice(part.first, part.first + part.heads)
            queries = slice(keys.start * group, keys.stop * group)
            size = part.heads * part.head.state_elements
            own = state[:, part.state_offset : part.state_offset + size].reshape(2, part.heads, -1)
            weights = list(WEIGHTS.values())[part.first_weight : part.first_weight + len(head.weight_names)]
            log_gate = gate[:, :, keys] if part.head.gate else None
            o, new = head(q[:, :, queries], k[:, :, keys], v[:, :, keys], log_gate, weights, own, return_state=True)
            os.append(o)
            states.append(new.reshape(2, -1))
        return np.concatenate(os, 2), np.concatenate(states, 1)

    def test_a_bundle_has_it_too(self):
        with tempfile.TemporaryDirectory() as folder:
            spec, bundle = Path(folder) / "layer.lua", Path(folder) / "bundle"
            spec.write_text(SPEC)
            subprocess.run([COMMAND, "gen", spec, "-o", bundle, "--object"], check=True, capture_output=True)
            mine = fpac.load_bundle(bundle, "mixed", cache_dir="")
        self.assertIsInstance(mine, fpac.Layer)
        q, k, v = operands()
        gate = log_gates(LENGTH, heads=HEADS)
        weights = list(WEIGHTS.values())
        self.assertTrue(same_bits(mine(q, k, v, gate, weights), self.layer(q, k, v, gate, weights)))

    def test_a_name_of_a_layer_opens_one(self):
        self.assertIsInstance(self.layer, fpac.Layer)
        self.assertNotIsInstance(opened("mean"), fpac.Layer)
        about = self.layer.explain()
        self.assertEqual((about.heads, about.d, about.dv, about.gate, about.normalized), (HEADS, 8, 4, True, True))
        self.assertEqual([(part.head.name, part.first, part.heads) for part in about.parts],
                         [("mean", 0, 2), ("gated", 2, 3), ("trained", 5, 1), ("trained", 6, 2)])  # fmt: skip
        self.assertEqual(self.layer.weight_names, tuple(WEIGHTS))
        self.assertIn("2 x mean, 3 x gated", repr(self.layer))
        with self.assertRaises(fpac.UnsupportedError):
            self.layer.choose_form(5)

    def test_it_has_the_bits_of_its_heads(self):
        gate = log_gates(LENGTH, heads=HEADS)
        for group in (1, 2):
            q, k, v = operands(group)
            state = np.abs(numbers(7, 2, self.layer.explain().state_elements))
            o, new = self.layer(q, k, v, gate, WEIGHTS, state, return_state=True)
            wanted, states = self.call_parts(q, k, v, gate, state, group)
            self.assertTrue(same_bits(o, wanted))
            self.assertTrue(same_bits(new, states))

    def test_steps_update_a_state(self):
        q, k, v = operands()
        gate = log_gates(LENGTH, heads=HEADS)
        whole, end = self.layer(q, k, v, gate, WEIGHTS, return_state=True, form="recurrent")
        state = self.layer.new_state(k)
        self.assertEqual(state.shape, (2, self.layer.explain().state_elements))
        for t in range(LENGTH):
            now = slice(t, t + 1)
            o = self.layer.step(q[:, now], k[:, now], v[:, now], state, gate[:, now], WEIGHTS)
            self.assertTrue(same_bits(o, np.ascontiguousarray(whole[:, now])))
        self.assertTrue(same_bits(state, end))

    def test_gradients_are_those_of_the_heads(self):
        layer = opened(backward=True)
        q, k, v = operands()
        gate, d_o = log_gates(LENGTH, heads=HEADS), numbers(8, 2, LENGTH, HEADS, 4)
        o, saved = layer(q, k, v, gate, WEIGHTS, return_saved=True)
        gradients = layer.backward(saved, d_o)
        head = opened("gated", backward=True)
        part = layer.explain().parts[1]
        keys = slice(part.first, part.first + part.heads)
        _, own = head(q[:, :, keys], k[:, :, keys], v[:, :, keys], gate[:, :, keys], return_saved=True)
        wanted = head.backward(own, d_o[:, :, keys])
        for name in ("q", "k", "v", "log_gate"):
            self.assertTrue(same_bits(np.ascontiguousarray(gradients[name][:, :, keys]), wanted[name]), name)
        self.assertEqual(gradients["trained@2.A"].shape, (2, 3, 8))

    def test_heads_are_joined(self):
        joined = fpac.join("joined", [(self.heads[0], 1), (self.heads[1], 2)])
        q, k, v = operands()
        gate = log_gates(LENGTH, heads=HEADS)[:, :, :3]
        o = joined(q[:, :, :3], k[:, :, :3], v[:, :, :3], gate)
        first = self.heads[0](q[:, :, :1], k[:, :, :1], v[:, :, :1])
        self.assertTrue(same_bits(np.ascontiguousarray(o[:, :, :1]), first))
        joined.close()
        self.assertFalse(self.heads[0].closed)
        with self.assertRaises(fpac.InvalidError):
            fpac.join("twice", [(joined, 1)])
        with self.assertRaisesRegex(fpac.InvalidError, "0 heads"):
            fpac.join("none", [(self.heads[0], 0)])

    def test_drafts_are_refused(self):
        q, k, v = (x[:, :4] for x in operands())
        state, count = self.layer.new_state(k), np.array([1, 2], "int32")
        for call in (
            lambda: self.layer.draft(q, k, v, state, log_gates(4, heads=HEADS), WEIGHTS),
            lambda: self.layer.accept(k, v, state, count, log_gates(4, heads=HEADS), WEIGHTS),
        ):
            with self.assertRaisesRegex(fpac.UnsupportedError, "mixed: is a layer, which has no drafts"):
                call()

    def test_what_is_wrong_is_told(self):
        q, k, v = operands()
        with self.assertRaisesRegex(fpac.InvalidError, "those of the layer are 8"):
            self.layer(q[:, :, :7], k[:, :, :7], v[:, :, :7])
        with self.assertRaisesRegex(fpac.InvalidError, "log_gate"):
            self.layer(q, k, v, weights=WEIGHTS)
        with self.assertRaisesRegex(fpac.InvalidError, "missing"):
            self.layer(q, k, v, weights={"trained.A": WEIGHTS["trained.A"]})
        with self.assertRaisesRegex(fpac.InvalidError, "there is no head"):
            opened("nothing")


if __name__ == "__main__":
    unittest.main()
