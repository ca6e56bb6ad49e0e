-- w_ij = (|scale * q_i.k_j| + 1e-7)^2 for j<=i; o_i = sum_j w_ij v_j
return head {
  name = "power2_unnorm", d = 32, dv = 16, scale = 0.1767766952966369,
  terms = power { degree = 2 },
}
