-- w_ij = (|scale * q_i.k_j| + 1e-7)^2 for j<=i; o_i = sum_j w_ij v_j / (sum_j w_ij + 1e-6 * max_j w_ij)
return head {
  name = "power2_norm", d = 16, dv = 24, scale = 0.25, normalize = { "sum", eps = 0 },
  terms = power { degree = 2 },
}
