-- w_ij = sum_t coef[t] * prod_b (w{t}_{b}[h] q_i).(w{t}_{b}[h] k_j); o_i = sum_j w_ij v_j, j<=i
local terms = {
  term { trainable { name = "w0_0", rows = 8 }, weight = 0.5105710029602051 },
  term { trainable { name = "w1_0", rows = 6 }, trainable { name = "w1_1", rows = 10 }, weight = 0.46406999230384827 },
  term { trainable { name = "w2_0", rows = 4 }, trainable { name = "w2_1", rows = 4 }, trainable { name = "w2_2", rows = 4 }, weight = 0.6673380136489868 },
}
return head {
  name = "fpa_dense_terms", d = 16, dv = 16,
  terms = terms,
}
