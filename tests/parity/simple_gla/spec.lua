-- G_i = sum_{m<=i} log_g_m; o_i = sum_{j<=i} scale * (q_i . k_j) exp(G_i - G_j) v_j   (equivalently S_i = exp(log_g_i) S_{i-1} + k_i v_i^T, o_i = scale q_i^T S_i)
return head {
  name = "simple_gla", d = 32, dv = 32, scale = 0.1767766952966369, gate = true,
  terms = linear {},
}
