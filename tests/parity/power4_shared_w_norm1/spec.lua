-- w_ij = ((w[h] q_i).(w[h] k_j))^4; o_i = sum_j w_ij v_j / (1 + sum_j w_ij), j<=i
local w = trainable { name = "w", rows = 8 }
return head {
  name = "power4_shared_w_norm1", d = 32, dv = 32, normalize = "one_plus_sum",
  terms = { term { w, w, w, w } },
}
