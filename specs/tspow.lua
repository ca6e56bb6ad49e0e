-- Tiled symmetric power, TSPOW: (q . k)^p by blocks of b coordinates.
--
-- Between SPOW (b = 1: fewest features, scattered) and TPOW (b = d: most features, regular):
-- whole b x b tiles of products, which is what registers and matrix units want, at the price of
-- the doubles inside the diagonal tiles. The paper's Appendix, "TSPOW is a special case of FPA".
--
--     d = 64, p = 2:   b =    1     2     4     8    16    64
--          as written, D = 2080  2112  2176  2304  2560  4096
--          simplified, D = 2080  2112  2112  2112  2112  2112
--
-- In squares the compiler halves the diagonal tiles, (x + y)^2 = 2 x y + x^2 + y^2, down to
-- two coordinates: tiles of up to b x b stay, nearly all of the doubles go. Above degree 2
-- diagonal tiles stay whole.

local function tspow_head(name, d, p, b, dv)
  return head { name = name, d = d, dv = dv, terms = tspow { d = d, degree = p, block = b } }
end

local heads = {}

-- Degree 2 at the width of real heads.
for _, b in ipairs { 1, 2, 4, 8, 16 } do
  heads[#heads + 1] = tspow_head("tspow2_d64_b" .. b, 64, 2, b, 64)
end

-- A block that does not divide d: the last one has 4 coordinates.
heads[#heads + 1] = tspow_head("tspow2_d60_b8", 60, 2, 8, 64)

-- Higher degrees, where the state grows quickly: 1280, 7680 and 560 features.
heads[#heads + 1] = tspow_head("tspow3_d16", 16, 3, 4, 16)
heads[#heads + 1] = tspow_head("tspow3_d32", 32, 3, 4, 32)
heads[#heads + 1] = tspow_head("tspow4_d8", 8, 4, 2, 24)

return heads
