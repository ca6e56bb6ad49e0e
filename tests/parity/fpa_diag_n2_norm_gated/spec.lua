-- w_ij = (|scale * prod_{l<n} sum_d q_i[d] g_diag[h,l,d] k_j[d]| + 1e-6) exp(G_i-G_j), G_i = sum_{m<=i} log_g_m; j<=i; o_i = sum_j w_ij v_j / (sum_j w_ij + 1e-6 * max_j w_ij)
-- g1, g2, ...: square roots of g_diag, one vector a head; the scale is on the whole product
return head {
  name = "fpa_diag_n2_norm_gated", d = 16, dv = 16, normalize = { "sum", eps = 0 }, gate = true,
  terms = { term { trainable { name = "g1", diagonal = true }, trainable { name = "g2", diagonal = true } } },
}
