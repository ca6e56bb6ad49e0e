-- w_ij = (|scale * q_i.k_j| + 1e-7)^4 for j<=i; o_i = sum_j w_ij v_j / (sum_j w_ij + 1e-6 * max_j w_ij)
return head {
  name = "power4_norm", d = 8, dv = 16, scale = 0.3535533905932738, normalize = { "sum", eps = 0 },
  terms = power { degree = 4 },
}
