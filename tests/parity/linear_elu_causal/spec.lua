-- phi(x) = elu(x)+1 = x+1 if x>0 else exp(x); o_i = sum_j phi(q_i).phi(k_j) v_j / (sum_j phi(q_i).phi(k_j) +
-- 1e-6), j<=i
return head {
  name = "linear_elu_causal", d = 16, dv = 24, normalize = { "sum", eps = 1e-6 },
  terms = term { identity():map(elu_plus_one) },
}
