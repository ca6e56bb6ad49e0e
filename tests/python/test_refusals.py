"""What is refused: by which exception, naming which argument, saying what."""

from __future__ import annotations

import pickle
import unittest

from support import SPEC, fpac, head, log_gates, np, numbers, operands


class Refusals(unittest.TestCase):
    def setUp(self):
        self.head = head("mean")
        self.q, self.k, self.v = operands(self.head.explain(), 6)

    def refuses(self, kind, where, words, call, *arguments, **more):
        with self.assertRaises(kind) as caught:
            call(*arguments, **more)
        self.assertIsInstance(caught.exception, fpac.Error)
        self.assertEqual(caught.exception.where, where)
        self.assertIn(words, caught.exception.message)
        self.assertEqual(str(caught.exception), f"{where}: {caught.exception.message}")
        return caught.exception

    def test_shapes(self):
        q, k, v = self.q, self.k, self.v
        for where, words, arrays in (
            ("q", "width of mean is 8", (q[..., :4].copy(), k, v)),
            ("q", "4 are needed", (q[0], k, v)),
            ("k", "axis 0", (q, k[:1], v)),
            ("k", "axis 1", (q, k[:, :3], v)),
            ("q", "multiple", (q[:, :, :1], k, v)),
            ("v", "axis 2", (q, k, v[:, :, :1])),
        ):
            error = self.refuses(ValueError, where, words, self.head, *arrays)
            self.assertIs(error.code, fpac.Code.INVALID)

    def test_dtypes(self):
        q, k, v = self.q, self.k, self.v
        for where, words, arrays in (
            ("q", "float64", (q.astype("float64"), k, v)),
            ("k", "int32", (q, k.astype("int32"), v)),
            ("v", ">f4", (q, k, v.astype(">f4"))),
            ("k", "is f16, but mean takes f32", (q, k.astype("float16"), v)),
        ):
            self.refuses(TypeError, where, words, self.head, *arrays)

    def test_arguments_that_are_no_arrays(self):
        q, k, v = self.q, self.k, self.v
        self.refuses(TypeError, "k", "builtins.list", self.head, q, [1], v)
        self.refuses(TypeError, "v", "is a list", self.head, q, k, [1])
        self.refuses(TypeError, "q", "is a str", self.head, "q", k, v)
        self.refuses(TypeError, "v", "masked", self.head, q, k, np.ma.masked_array(v, v > 0))

    def test_the_last_axis_is_contiguous(self):
        wide = np.zeros((*self.q.shape[:3], 16), "float32")[..., ::2]
        self.refuses(ValueError, "q", "axis 3 has the stride 2", self.head, wide, self.k, self.v)
        state = self.head.new_state(self.k)
        wide = np.zeros((*state.shape[:2], 2 * state.shape[2]), "float32")[..., ::2]
        self.refuses(ValueError, "state_in", "stride 2", self.head, self.q, self.k, self.v, state=wide)

    def test_strides_between_elements(self):
        raw = np.zeros((*self.q.shape[:3], 33), "uint8")[..., :32].view("float32")
        self.refuses(ValueError, "q", "no multiples", self.head, raw, self.k, self.v)

    def test_gates(self):
        gate = log_gates(6)
        self.refuses(ValueError, "log_gate", "mean has no gate", self.head, self.q, self.k, self.v, gate)
        gated = head("gated")
        self.refuses(ValueError, "log_gate", "gated is gated", gated, self.q, self.k, self.v)
        half = gate.astype("float16")
        self.refuses(TypeError, "log_gate", "takes f32", gated, self.q, self.k, self.v, half)
        self.refuses(ValueError, "log_gate", "axis 1", gated, self.q, self.k, self.v, gate[:, :3])

    def test_weights(self):
        mine = head("trained")
        arrays = operands(mine.explain(), 6)
        a, b = numbers(5, 2, 3, 8), numbers(6, 5, 8)
        for words, weights in (
            ("names 'C', but trained has A, B", {"A": a, "B": b, "C": a}),
            ("B of trained missing", {"A": a}),
            ("1 are given, but trained has A, B", [a]),
        ):
            self.refuses(ValueError, "weights", words, mine, *arrays, weights=weights)
        self.refuses(ValueError, "weights", "is NULL", mine, *arrays)
        self.refuses(ValueError, "weights[0] (A)", "axis 1 has 2 rows", mine, *arrays, weights=[a[:, :2].copy(), b])
        self.refuses(ValueError, "weights[1] (B)", "stride", mine, *arrays, weights=[a, np.asfortranarray(b)])
        self.refuses(ValueError, "weights", "mean has none", self.head, self.q, self.k, self.v, weights=[a])

    def test_gradients_of_nothing(self):
        self.refuses(TypeError, "saved", "return_saved=True", self.head.backward, None, self.q)

    def test_states(self):
        q, k, v = self.q[:, :1], self.k[:, :1], self.v[:, :1]
        state = self.head.new_state(k)
        self.refuses(ValueError, "state_in", "axis 2", self.head, q, k, v, state=state[..., :-1].copy())
        self.refuses(ValueError, "state", "see new_state", self.head.step, q, k, v, None)
        self.refuses(ValueError, "state", "see new_state", self.head.update, k, v, None)
        state.flags.writeable = False
        self.refuses(ValueError, "state", "is read-only", self.head.step, q, k, v, state)
        self.refuses(ValueError, "k", "4 are needed", self.head.new_state, k[0])

    def test_a_state_that_overlaps_an_input(self):
        about = self.head.explain()
        memory = np.zeros(4 * about.state_elements, "float32")
        state = memory.reshape(2, 2, -1)
        k = memory[: 2 * 2 * 8].reshape(2, 1, 2, 8)
        q, v = self.q[:, :1], self.v[:, :1]
        self.refuses(ValueError, "state_out", "overlaps that of k", self.head.step, q, k, v, state)

    def test_forms(self):
        self.refuses(ValueError, "form", "'quick'", self.head, self.q, self.k, self.v, form="quick")
        full = head("full")
        arrays = operands(full.explain(), 6)
        error = self.refuses(NotImplementedError, "full", "has no recurrent form", full, *arrays, form="recurrent")
        self.assertEqual(error.code, fpac.Code.UNSUPPORTED)

    def test_recent_tokens_without_their_keys(self):
        state = self.head.new_state(self.k)
        one = self.q[:, :1]
        self.refuses(ValueError, "k", "axis 1", self.head, one, self.k[:, :1], self.v[:, :1], state=state, recent=2)

    def test_specs(self):
        for kind, where, words, arguments in (
            (ValueError, "mine.lua:2", "", ("\nreturn head {", None)),
            (ValueError, "mine.lua", "name one of: plain, mean", (SPEC, None)),
            (ValueError, "mine.lua", "nobody", (SPEC, "nobody")),
        ):
            with self.assertRaises(kind) as caught:
                fpac.head(*arguments, file="mine.lua")
            self.assertEqual(caught.exception.where, where)
            self.assertIn(words, caught.exception.message)
        error = self.refuses(OSError, "nowhere.lua", "No such file", fpac.load, "nowhere.lua")
        self.assertEqual(error.code, fpac.Code.IO)
        self.refuses(ValueError, "text", "zero byte", fpac.head, "return\0", "a")

    def test_targets_and_compilers(self):
        self.refuses(NotImplementedError, "c:best", "is no target", head, "mean", "c:best")
        with self.assertRaises(fpac.CompileError) as caught:
            fpac.head(SPEC, "mean", cache_dir="", compiler="/nowhere/cc")
        self.assertIn("/nowhere/cc", str(caught.exception))

    def test_a_device_of_the_cpu(self):
        for target in (None, "c", "c:avx2"):
            words = f'is 0, but target "{target or "c"}" computes on the CPU: leave device out'
            self.refuses(ValueError, "device", words, fpac.head, SPEC, "mean", target, device=0)

    def test_a_closed_head(self):
        mine = fpac.head(SPEC, "mean")
        self.assertFalse(mine.closed)
        with mine as same:
            self.assertIs(same, mine)
            mine(self.q, self.k, self.v)
        self.assertTrue(mine.closed)
        self.refuses(ValueError, "mean", "is closed", mine, self.q, self.k, self.v)
        self.refuses(ValueError, "mean", "is closed", mine.choose_form, 3)
        mine.close()
        self.assertEqual(mine.explain().name, "mean")
        self.assertIn("closed", repr(mine))

    def test_a_head_is_not_pickled(self):
        with self.assertRaisesRegex(TypeError, "open the spec again"):
            pickle.dumps(self.head)

    def test_every_code_of_the_library_is_an_exception_of_its_own(self):
        from fpac import errors, library

        kinds = set()
        for code in fpac.Code:
            error = errors.error_of(code, "here", "so")
            self.assertEqual((error.code, str(error)), (code, "here: so"))
            self.assertEqual(library.library().fpa_status_name(code).decode(), code.name.lower().replace("_", " "))
            kinds.add(type(error))
        self.assertEqual(len(kinds), len(fpac.Code))
        self.assertIs(type(errors.error_of(99, "", "so")), fpac.Error)
        self.assertEqual(str(errors.error_of(99, "", "so")), "so")


if __name__ == "__main__":
    unittest.main()
