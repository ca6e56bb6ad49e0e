-- Heads as somebody may write them: widths that fill no tile, variants of the flagship, products of dense branches.
-- fpac bench bench/user_shapes.lua --target cuda --heads 16 --length 4096 --batch 16; what the model of the machine
-- predicts of them: bench/results/current/predict-gpu.txt.
local heads = {}

local function add(name, d, dv, terms, gate, normalize)
  heads[#heads + 1] = head { name = name, d = d, dv = dv, terms = terms, dtype = "bf16", scale = 1 / 8,
                             gate = gate or false, normalize = normalize or "none" }
end

local function dense_product(name, d, dv, ...)
  local branches = {}
  for i, rows in ipairs { ... } do branches[i] = dense(orthogonal { rows = rows, d = d, seed = i }) end
  add(name, d, dv, { term(branches) })
end

for _, x in ipairs { { 40, 40 }, { 72, 72 }, { 20, 100 }, { 64, 64 }, { 128, 128 }, { 24, 96 } } do
  add("p2_" .. x[1] .. "_" .. x[2], x[1], x[2], power { degree = 2 })
end
add("p2g_64_64", 64, 64, power { degree = 2 }, true)
add("p2n_64_64", 64, 64, power { degree = 2 }, false, "sum")
add("p2gn_64_64", 64, 64, power { degree = 2 }, true, "sum")
add("p2gn_32_64", 32, 64, power { degree = 2 }, true, "sum")
add("p4_12_64", 12, 64, power { degree = 4 })
add("p3_16_32", 16, 32, power { degree = 3 })
add("t2_16_64", 16, 64, taylor { degree = 2 })
add("t2g_16_64", 16, 64, taylor { degree = 2 }, true)
add("t2n_16_64", 16, 64, taylor { degree = 2 }, false, "sum")
add("l_64_64", 64, 64, linear {})
add("lg_64_64", 64, 64, linear {}, true)
add("ln_64_64", 64, 64, linear {}, false, "sum")
add("l_32_32", 32, 32, linear {})
dense_product("d_24_40", 64, 64, 24, 40)
dense_product("d_48_48", 64, 64, 48, 48)
dense_product("d_12_12_12", 64, 64, 12, 12, 12)
dense_product("d_16_32", 64, 64, 16, 32)
dense_product("d_64_64_128", 128, 128, 64, 64)
dense_product("d_8_16_64_32", 64, 32, 8, 16)

return heads
