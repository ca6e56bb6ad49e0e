-- s = scale * q_i.k_j; w_ij = 1 + s + s^2/2 (all j); o_i = sum_j w_ij v_j / max(sum_j w_ij, 1e-5)
return head {
  name = "taylor_full_noncausal", d = 16, dv = 16, scale = 0.25, causal = false, normalize = { "max", eps = 1e-5 },
  terms = { term { weight = 1 }, term { identity() }, term { identity(), identity(), weight = 1 / 2 } },
}
