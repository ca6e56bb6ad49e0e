-- m(x) = ((w1 x) * (w2 x)) / r elementwise, r = 8; w_ij = (m(q_i).m(k_j))^2; o_i = sum_j w_ij v_j / (1 + sum_j w_ij), all j
-- m(q).m(k) sums products of one row of w1 and one of w2; its square has four branches a term
local w1, w2, r = npy("w1.npy"), npy("w2.npy"), 8
local terms = {}
for a = 1, r do
  for b = 1, r do
    terms[#terms + 1] = term {
      dense { w1[a] }, dense { w2[a] }, dense { w1[b] }, dense { w2[b] }, weight = 1 / r ^ 4,
    }
  end
end
return head {
  name = "polysketch_noncausal", d = 32, dv = 16, causal = false, normalize = "one_plus_sum",
  terms = terms,
}
