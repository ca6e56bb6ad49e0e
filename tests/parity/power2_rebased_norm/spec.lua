-- w_ij = (scale * q_i.k_j)^2; o_i = sum_{j<=i} w_ij v_j / (sum_{j<=i} w_ij + 1e-6)
return head {
  name = "power2_rebased_norm", d = 32, dv = 32, scale = 0.1767766952966369, normalize = { "sum", eps = 1e-6 },
  terms = power { degree = 2 },
}
