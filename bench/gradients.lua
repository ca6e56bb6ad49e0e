-- Heads whose gradients are timed: fpac bench bench/gradients.lua --backward --target cuda --heads 16 --length 4096 --batch 16;
-- figures: bench/results/current/backward.txt.
local tspow2 = tspow { d = 64, degree = 2, block = 8 }
local learned = term { trainable { name = "a", rows = 32 }, trainable { name = "b", rows = 32 } }

return
  head { name = "tspow2", d = 64, dv = 64, terms = tspow2, dtype = "bf16", scale = 1 / 8 },
  head { name = "tspow2_gn", d = 64, dv = 64, terms = tspow2, dtype = "bf16", scale = 1 / 8, gate = true, normalize = "sum" },
  head { name = "linear", d = 64, dv = 64, terms = linear {}, dtype = "bf16", scale = 1 / 8 },
  head { name = "linear_n", d = 64, dv = 64, terms = linear {}, dtype = "bf16", scale = 1 / 8, normalize = "sum" },
  head { name = "linear_gn128", d = 128, dv = 128, terms = linear {}, dtype = "bf16", scale = 1 / 8, gate = true, normalize = "sum" },
  head { name = "trainable", d = 64, dv = 64, terms = learned, dtype = "bf16", scale = 1 / 8 }
