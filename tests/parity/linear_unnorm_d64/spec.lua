-- o_i = sum_{j<=i} scale * (q_i . k_j) v_j
return head {
  name = "linear_unnorm_d64", d = 64, dv = 64, scale = 0.125,
  terms = linear {},
}
