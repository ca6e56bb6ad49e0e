-- w_ij = sum_t coef[t] * prod_b (w{t}_{b}[h] q_i).(w{t}_{b}[h] k_j); o_i = sum_j w_ij v_j / (1 + sum_j w_ij), j<=i
local terms = {
  term { trainable { name = "w0_0", rows = 12 }, trainable { name = "w0_1", rows = 12 }, weight = 1.0767810344696045 },
}
return head {
  name = "fpa_dense_paired_norm", d = 32, dv = 32, normalize = "one_plus_sum",
  terms = terms,
}
