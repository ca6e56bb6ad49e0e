-- Heads for experiments/fourier.c: functions of the distance alone, sum over r of c_r cos(b_r + a_r (p_i - p_j)). The
-- rows of q and k are mapped to 1; a, b and c are given at run time. d angles, D = 2 d features.
local heads = {}
for _, d in ipairs { 2, 4, 8, 16, 32, 64 } do
  heads[#heads + 1] = head {
    name = "angles_" .. d, d = d, dv = 1, positions = 1, terms = fourier { map = one },
  }
end
return heads
