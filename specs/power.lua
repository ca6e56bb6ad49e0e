-- Power attention: k(q, k) = (q . k)^p, the TPOW of the paper's section "Power Attention" and
-- the second row of its Table 1.
--
-- Written down, a head has p branches W = I and d^p features. Many of them are equal (x1 x2 and
-- x2 x1); the compiler keeps each once, in blocks, so that these heads and the ones of tspow.lua
-- end as the same code.

return
  head { name = "power2_d64", d = 64, dv = 64, terms = power { degree = 2 } },
  head { name = "power3_d16", d = 16, dv = 16, terms = power { degree = 3 } },
  head { name = "power4_d8",  d = 8,  dv = 24, terms = power { degree = 4 } }
