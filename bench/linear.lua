-- Linear heads of the widths that models have, with and without a gate (GLA, RetNet, Mamba 2), and such a head's features by a matrix.
-- fpac bench bench/linear.lua --backward --target cuda --heads 16 --length 4096 --batch 16
local heads = {}

local function add(name, d, dv, terms, gate, normalize, dtype)
  heads[#heads + 1] = head { name = name, d = d, dv = dv, terms = terms, dtype = dtype or "bf16", scale = 1 / 8,
                             gate = gate or false, normalize = normalize or "none" }
end

for _, x in ipairs { { 64, 128 }, { 128, 128 }, { 128, 256 }, { 256, 256 } } do
  local d, dv = x[1], x[2]
  add("l_" .. d .. "_" .. dv, d, dv, linear {})
  add("lg_" .. d .. "_" .. dv, d, dv, linear {}, true)
end
add("ln_128_256", 128, 256, linear {}, false, "sum")
add("lgn_128_256", 128, 256, linear {}, true, "sum")
add("lg_256_256_f16", 256, 256, linear {}, true, "none", "f16")
add("l_256_256_f16", 256, 256, linear {}, false, "none", "f16")
add("w_128_256", 256, 256, { term { trainable { name = "w", rows = 128 } } }, true)

return heads
