-- w_ij = (scale * q_i.k_j)^2, o_i = sum_{j<=i} w_ij v_j / sum_{j<=i} w_ij, up to the epsilons in the notes; running it whole or split at `split` must give the same o
return head {
  name = "power2_split", d = 16, dv = 16, scale = 0.25, normalize = { "sum", eps = 0 },
  terms = power { degree = 2 },
}
