-- w_ij = (scale * q_i.k_j)^2 exp(G_i-G_j), o_i = sum_{j<=i} w_ij v_j / sum_{j<=i} w_ij, up to the epsilons in the notes; running it whole or split at `split` must give the same o
return head {
  name = "power2_split_gated", d = 32, dv = 32, scale = 0.1767766952966369, normalize = { "sum", eps = 0 }, gate = true,
  terms = power { degree = 2 },
}
