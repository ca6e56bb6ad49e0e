"""Arrays of other libraries, by DLPack."""

from __future__ import annotations

import sys
import types
import unittest

from support import fpac, head, np, operands, same_bits

# A library of arrays that knows nothing but DLPack.
strange = types.ModuleType("strange")


class Strange:
    __module__ = "strange"

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **more):
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.device


strange.from_dlpack = Strange


class Dlpack(unittest.TestCase):
    def setUp(self):
        sys.modules["strange"] = strange
        self.addCleanup(sys.modules.pop, "strange")
        self.head = head("mean")
        self.arrays = operands(self.head.explain(), 20)

    def test_results_are_of_the_caller_s_kind(self):
        o, state = self.head(*map(Strange, self.arrays), return_state=True)
        self.assertIs(type(o), Strange)
        expected, expected_state = self.head(*self.arrays, return_state=True)
        self.assertTrue(same_bits(o.array, expected))
        self.assertTrue(same_bits(state.array, expected_state))

    def test_a_state_is_updated_where_it_lies(self):
        q, k, v = (array[:, :1] for array in self.arrays)
        state, same = self.head.new_state(Strange(k)), self.head.new_state(k)
        if not np.from_dlpack(state).flags.writeable:  # NumPy before 2
            with self.assertRaisesRegex(ValueError, "state: is read-only"):
                self.head.step(Strange(q), Strange(k), Strange(v), state)
            return
        o = self.head.step(Strange(q), Strange(k), Strange(v), state)
        self.assertTrue(same_bits(o.array, self.head.step(q, k, v, same)))
        self.assertTrue(same_bits(state.array, same))

    def test_another_device_is_refused(self):
        q, k, v = self.arrays
        with self.assertRaisesRegex(TypeError, "k: is not on the CPU"):
            self.head(Strange(q), Strange(k, device=(2, 0)), Strange(v))

    def test_what_numpy_cannot_take_is_refused(self):
        q, k, v = self.arrays
        odd = Strange(k.astype(">f4"))
        with self.assertRaisesRegex(fpac.ArgumentTypeError, "k: cannot be taken by DLPack"):
            self.head(Strange(q), odd, Strange(v))

    def test_jax(self):
        try:
            import jax.numpy as jnp
        except ImportError:
            self.skipTest("JAX is not installed")
        o, state = self.head(*map(jnp.asarray, self.arrays), return_state=True)
        self.assertIsInstance(o, type(jnp.zeros(1)))
        expected, expected_state = self.head(*self.arrays, return_state=True)
        self.assertTrue(same_bits(np.asarray(o), expected) and same_bits(np.asarray(state), expected_state))
        q, k, v = (jnp.asarray(array[:, :1]) for array in self.arrays)
        with self.assertRaisesRegex(ValueError, "state: is read-only"):
            self.head.step(q, k, v, self.head.new_state(k))


if __name__ == "__main__":
    unittest.main()
