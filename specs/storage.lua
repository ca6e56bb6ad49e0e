-- Narrow storage: q, k, v and o in 16 bits, computed in float.
--
-- The state runs in float; it is given in and out in state_dtype. A bf16 state is half as large
-- to keep and to move, and costs one rounding at every hand-over.

local function narrow(name, dtype, state_dtype)
  return head {
    name = name, d = 32, dv = 64, scale = 1 / 4, normalize = "sum", eps = 1e-3,
    dtype = dtype, state_dtype = state_dtype,
    terms = tspow { d = 32, degree = 2, block = 8 },
  }
end

-- The heads that GPUs are measured with: bf16 operands, products on tensor cores.
local function measured(name, d, terms, state_dtype)
  return head { name = name, d = d, dv = d, dtype = "bf16", state_dtype = state_dtype, terms = terms }
end

return narrow("tspow2_d32_bf16", "bf16", "f32"),
       narrow("tspow2_d32_bf16_state", "bf16", "bf16"),
       narrow("tspow2_d32_f16", "f16", "f32"),
       measured("tspow2_d64_bf16", 64, tspow { d = 64, degree = 2, block = 8 }),
       measured("tspow2_d64_bf16_state", 64, tspow { d = 64, degree = 2, block = 8 }, "bf16"),
       measured("tspow2_d128_bf16", 128, tspow { d = 128, degree = 2, block = 8 }),
       measured("linear_d64_bf16", 64, linear {}),
       -- On GPUs: float32 products as three products of tf32 on tensor cores.
       head { name = "tspow2_d64_tf32x3", d = 64, dv = 64, products = "tf32x3",
              terms = tspow { d = 64, degree = 2, block = 8 } }
