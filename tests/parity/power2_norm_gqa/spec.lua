-- G_i = sum_{m<=i} log_g_m; w_ij = (|scale * q_i.k_j| + 1e-7)^2 exp(G_i-G_j) for j<=i; o_i = sum_j w_ij v_j / (sum_j w_ij + 1e-6 * max_j w_ij)
return head {
  name = "power2_norm_gqa", d = 16, dv = 16, scale = 0.25, normalize = { "sum", eps = 0 }, gate = true,
  terms = power { degree = 2 },
}
