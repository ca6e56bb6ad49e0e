-- S_i = S_{i-1} + k_i v_i^T, S_{-1} = initial_state; o_i = scale * q_i^T S_i; final_state = S_{T-1}
return head {
  name = "linear_state", d = 16, dv = 24, scale = 0.25,
  terms = linear {},
}
