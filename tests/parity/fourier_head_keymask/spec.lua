-- phi(x) = exp(x); w_ij = sum_d phi(q_i)[d] phi(k_j)[d] (1 + cos(b[h,d] + sum_p a[h,d,p] (pos_i[p] -
-- pos_j[p]))); o_i = sum_j w_ij v_j / (sum_j w_ij + 1e-8), all j, key_mask[b,j] == 0
return head {
  name = "fourier_head_keymask", d = 8, dv = 8, positions = 1, causal = false, key_mask = true, normalize = { "sum", eps = 1e-8 },
  terms = fourier { form = "one_plus", map = exp },
}
