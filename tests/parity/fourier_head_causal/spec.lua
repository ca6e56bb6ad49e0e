-- phi(x) = exp(x); w_ij = sum_d phi(q_i)[d] phi(k_j)[d] (1 + cos(b[h,d] + sum_p a[h,d,p] (pos_i[p] -
-- pos_j[p]))); o_i = sum_j w_ij v_j / (sum_j w_ij + 1e-8), j<=i
return head {
  name = "fourier_head_causal", d = 16, dv = 16, positions = 1, normalize = { "sum", eps = 1e-8 },
  terms = fourier { form = "one_plus", map = exp },
}
