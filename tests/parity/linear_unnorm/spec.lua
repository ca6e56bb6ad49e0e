-- o_i = sum_{j<=i} scale * (q_i . k_j) v_j
return head {
  name = "linear_unnorm", d = 32, dv = 48, scale = 0.1767766952966369,
  terms = linear {},
}
