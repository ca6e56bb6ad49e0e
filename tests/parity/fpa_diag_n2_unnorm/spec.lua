-- w_ij = (|scale * prod_{l<n} sum_d q_i[d] g_diag[h,l,d] k_j[d]| + 1e-6); j<=i; o_i = sum_j w_ij v_j
-- g1, g2, ...: square roots of g_diag, one vector a head; the scale is on the whole product
return head {
  name = "fpa_diag_n2_unnorm", d = 16, dv = 24,
  terms = { term { trainable { name = "g1", diagonal = true }, trainable { name = "g2", diagonal = true }, weight = 0.0625 } },
}
