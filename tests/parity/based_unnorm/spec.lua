-- s = scale * q_i.k_j; w_ij = 1 + s + s^2/2; o_i = sum_{j<=i} w_ij v_j
return head {
  name = "based_unnorm", d = 16, dv = 32, scale = 0.25,
  terms = { term { weight = 1 }, term { identity() }, term { identity(), identity(), weight = 1 / 2 } },
}
