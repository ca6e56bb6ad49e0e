-- Heads of growing state for examples/recall.c: the same values, more and more features.
-- Blocks change the layout of a state (above degree 2 its size too), not the kernel: what is
-- recalled depends on d and on the degree.
local dv = 64
local heads = {}

for _, d in ipairs { 16, 32, 64 } do
  heads[#heads + 1] = head { name = "linear_d" .. d, d = d, dv = dv, terms = linear {} }
end

for _, shape in ipairs { { 16, 4 }, { 32, 8 }, { 64, 1 }, { 64, 8 } } do
  local d, b = shape[1], shape[2]
  heads[#heads + 1] = head {
    name = "tspow2_d" .. d .. "_b" .. b, d = d, dv = dv,
    terms = tspow { d = d, degree = 2, block = b },
  }
end

heads[#heads + 1] = head {
  name = "tspow3_d16_b4", d = 16, dv = dv, terms = tspow { d = 16, degree = 3, block = 4 },
}

return heads
