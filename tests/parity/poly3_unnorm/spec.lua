-- w_ij = (gamma * q_i.k_j + coef0)^3; o_i = sum_j w_ij v_j, j<=i
return head {
  name = "poly3_unnorm", d = 16, dv = 16, scale = 0.25,
  terms = power { degree = 3 },
}
