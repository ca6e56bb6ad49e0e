-- Attention with a Fourier positional kernel: each product of a query's and a key's coordinate is weighted by a function
-- of how far apart the two are,
--
--     S_ij = sum over r  phi(q_ir) phi(k_jr) c_r cos(b_r + a_r . (p_i - p_j))
--
-- with positions p of any number of dimensions and a, b, c learned for each head. The cosine of a difference is two
-- products, so that each coordinate becomes two, and nothing of size L x L is ever made.

-- Softplus keeps phi positive; positions of one number, such as the time.
local seed = fourier { map = softplus }

-- 1 + cos is never negative: nor are the weights, and the normaliser is safe. d more coordinates.
local one_plus = fourier { map = exp, form = "one_plus" }

-- Positions on a grid, all tokens of it visible, one set of weights for all heads.
local grid = fourier { map = softplus, shared = true }

-- Fixed angles in place of learned ones turn pairs of coordinates as rotary embeddings do: k = sum of q_r k_r cos(...).
local angles = {}
for r = 1, 16 do angles[r] = { 1 / 2 ^ (r / 2) } end
local fixed = fourier { a = dense(angles), b = false, c = false }

-- A function of the position alone, times a power of q.k.
local decaying = term { identity(), coordinates { select { 1, 2, 3 }, map = one, angle = "a", phase = "b", amplitude = "c" } }

return head { name = "fourier_d32", d = 32, dv = 32, positions = 1, terms = seed, normalize = { "sum", eps = 0 } },
       head { name = "fourier_one_plus_d16", d = 16, dv = 16, positions = 1, terms = one_plus,
              normalize = { "sum", eps = 1e-8 } },
       head { name = "fourier_grid_d16", d = 16, dv = 16, positions = 2, terms = grid, normalize = "sum",
              causal = false, key_mask = true },
       head { name = "fourier_fixed_d16", d = 16, dv = 16, positions = 1, terms = fixed },
       head { name = "fourier_times_dot_d16", d = 16, dv = 16, positions = 1, terms = decaying, scale = 1 / 4 }
