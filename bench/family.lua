-- Heads of the rest of the family, for fpac bench: maps, positions, sketches, random features, windows, no mask.
-- fpac bench bench/family.lua --target cuda --heads 16 --length 4096 --batch 16; their share of the bound counts the
-- products of their projections.
local function bf16(fields)
  fields.dtype = "bf16"
  fields.dv = 64
  return head(fields)
end

local elu = linear { map = elu_plus_one }
local tspow2 = tspow { d = 64, degree = 2, block = 8 }

return
  bf16 { name = "linear_64", d = 64, terms = linear {}, normalize = "sum" },
  bf16 { name = "elu_linear_64", d = 64, terms = elu, normalize = "sum" },
  bf16 { name = "elu_encoder_64", d = 64, terms = elu, normalize = "sum", causal = false },
  bf16 { name = "fourier_64", d = 64, terms = fourier { map = softplus }, positions = 1, normalize = "sum" },
  bf16 { name = "tensorsketch_64_256", d = 64, terms = tensorsketch { d = 64, degree = 2, size = 256, seed = 1 } },
  bf16 { name = "favor_64_128", d = 64, terms = favor { d = 64, size = 128, seed = 1, gamma = 1 / 8 }, normalize = "sum" },
  bf16 { name = "polysketch_16_64", d = 64, terms = polysketch { d = 64, rows = 16, seed = 5 }, normalize = "one_plus_sum",
         scale = 1 / 8 },
  bf16 { name = "based_16_64", d = 16, terms = taylor { degree = 2 }, normalize = "sum", scale = 1 / 4 },
  bf16 { name = "based_window_16_64", d = 16, terms = taylor { degree = 2 }, normalize = "sum", scale = 1 / 4, window = 128 },
  bf16 { name = "tspow2_64", d = 64, terms = tspow2, scale = 1 / 8 },
  bf16 { name = "tspow2_encoder_64", d = 64, terms = tspow2, scale = 1 / 8, causal = false }
