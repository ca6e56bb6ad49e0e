-- w_ij = (|scale * prod_{l<n} sum_d q_i[d] g_diag[h,l,d] k_j[d]| + 1e-6); j<=i; o_i = sum_j w_ij v_j / (sum_j w_ij + 1e-6 * max_j w_ij)
-- g1, g2, ...: square roots of g_diag, one vector a head; the scale is on the whole product
return head {
  name = "fpa_diag_n2_norm", d = 32, dv = 32, normalize = { "sum", eps = 0 },
  terms = { term { trainable { name = "g1", diagonal = true }, trainable { name = "g2", diagonal = true } } },
}
