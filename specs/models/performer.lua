-- Performer: softmax attention by positive random features, FAVOR+.
--
-- K. Choromanski and others, "Rethinking Attention with Performers", ICLR 2021 (arXiv:2009.14794). m rows w at right
-- angles to each other, drawn as independent Gaussian ones are long, and phi(x) = exp(w.x - |x|^2 / 2) / sqrt(m) of
-- x = q / d^(1/4) and k / d^(1/4): E phi(q).phi(k) = exp(q.k / sqrt(d)). m = 256 is their code's default.
--
-- Their code subtracts the greatest exponent of all keys, and of each query, before the exponential. Of a query that
-- cancels in the normaliser; of all keys it would look into the future, so here a number given once takes its place, the
-- shift. The small number that they add to the exponentials is left out. They draw the rows anew from time to time in
-- training; a head has one draw.

return head { name = "performer_d64_m256", d = 64, dv = 64, normalize = "sum",
              terms = favor { d = 64, size = 256, seed = 1, gamma = 1 / sqrt(64), shift = 1 } }
