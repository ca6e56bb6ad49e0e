-- s = scale * q_i.k_j; w_ij = 1 + s + s^2/2; o_i = sum_{j<=i} w_ij v_j / (sum_{j<=i} w_ij + 1e-6)
return head {
  name = "based_norm", d = 16, dv = 64, scale = 0.25, normalize = { "sum", eps = 1e-6 },
  terms = { term { weight = 1 }, term { identity() }, term { identity(), identity(), weight = 1 / 2 } },
}
