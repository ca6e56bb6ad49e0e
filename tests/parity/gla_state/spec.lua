-- S_i = exp(log_g_i) S_{i-1} + k_i v_i^T, S_{-1} = initial_state; o_i = scale * q_i^T S_i; final_state = S_{T-1}
return head {
  name = "gla_state", d = 32, dv = 16, scale = 0.1767766952966369, gate = true,
  terms = linear {},
}
