-- w_ij = (gamma * q_i.k_j + coef0)^2; o_i = sum_j w_ij v_j, all j
return head {
  name = "poly2_coef0_noncausal", d = 8, dv = 16, scale = 0.35, causal = false,
  terms = inhomogeneous { degree = 2, constant = 0.8 },
}
