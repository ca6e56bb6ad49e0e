-- phi(x) = log(1+exp(x)); w_ij = sum_d phi(q_i)[d] phi(k_j)[d] c[h,d] cos(b[h,d] + sum_p a[h,d,p] (pos_i[p] -
-- pos_j[p])); o_i = sum_j w_ij v_j / sum_j w_ij, all j
return head {
  name = "fourier_seed_noncausal_2d_grid", d = 16, dv = 16, positions = 2, causal = false, normalize = { "sum", eps = 0 },
  terms = fourier { form = "seed", map = softplus },
}
