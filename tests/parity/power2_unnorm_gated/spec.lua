-- G_i = sum_{m<=i} log_g_m; w_ij = (|scale * q_i.k_j| + 1e-7)^2 exp(G_i-G_j) for j<=i; o_i = sum_j w_ij v_j
return head {
  name = "power2_unnorm_gated", d = 8, dv = 8, scale = 0.3535533905932738, gate = true,
  terms = power { degree = 2 },
}
