-- phi(x) = log(1+exp(x)); w_ij = sum_d phi(q_i)[d] phi(k_j)[d] c[h,d] cos(b[h,d] + sum_p a[h,d,p] (pos_i[p] -
-- pos_j[p])); o_i = sum_j w_ij v_j, j<=i
return head {
  name = "fourier_seed_causal_unnorm_2d", d = 8, dv = 8, positions = 2,
  terms = fourier { form = "seed", map = softplus },
}
