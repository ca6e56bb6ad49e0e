-- Heads of many shapes, for fpac bench: what users may pick besides the shapes of the README's table.
-- fpac bench bench/shapes.lua --target cuda --heads 16 --length 4096 --batch 16; figures: bench/results/current/shapes.txt.
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

for _, x in ipairs { { 16, 16 }, { 32, 32 }, { 48, 48 }, { 64, 32 }, { 64, 80 }, { 64, 128 }, { 80, 80 }, { 96, 96 },
                     { 128, 64 }, { 32, 128 } } do
  add("p2_" .. x[1] .. "_" .. x[2], x[1], x[2], power { degree = 2 })
end
for _, d in ipairs { 16, 24, 32 } do add("p3_" .. d .. "_64", d, 64, tspow { d = d, degree = 3, block = 8 }) end
for _, x in ipairs { { 8, 64 }, { 16, 32 }, { 16, 128 }, { 24, 64 }, { 32, 64 }, { 32, 128 } } do
  add("t2_" .. x[1] .. "_" .. x[2], x[1], x[2], taylor { degree = 2 })
end
add("t3_8_64", 8, 64, taylor { degree = 3 })
for _, x in ipairs { { 16, 64 }, { 32, 64 }, { 64, 32 }, { 64, 128 }, { 80, 80 }, { 96, 96 }, { 128, 64 }, { 128, 128 },
                     { 128, 256 }, { 160, 64 }, { 192, 128 }, { 256, 64 }, { 256, 256 } } do
  local name = "_" .. x[1] .. "_" .. x[2]
  add("l" .. name, x[1], x[2], linear {})
  add("lg" .. name, x[1], x[2], linear {}, true)
  add("ln" .. name, x[1], x[2], linear {}, false, "sum")
  add("lgn" .. name, x[1], x[2], linear {}, true, "sum")
end
dense_product("d_16_16", 64, 64, 16, 16)
dense_product("d_32_32", 64, 64, 32, 32)
dense_product("d_8_8_8", 64, 64, 8, 8, 8)
dense_product("d_4_4_4_4", 64, 64, 4, 4, 4, 4)
dense_product("d_16_32_128", 64, 128, 16, 32)
dense_product("d_64_128", 128, 128, 64)
dense_product("d_16_16_128", 128, 128, 16, 16)
add("tn_16_24", 48, 64, { term { trainable { name = "a", rows = 16 }, trainable { name = "b", rows = 24 } } })

return heads
