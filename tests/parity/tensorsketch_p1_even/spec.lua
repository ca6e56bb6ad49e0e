-- y = [sqrt(gamma) x]; c_l[n] = sum_{i: index_hash[h,l,i]=n} bit_hash[h,l,i] y[i], l < p, n < N; phi(x) =
-- real(ifft(prod_l fft(c_l))) (circular convolution of the p count sketches); w_ij = phi(q_i).phi(k_j); o_i =
-- sum_{j<=i} w_ij v_j
return head {
  name = "tensorsketch_p1_even", d = 16, dv = 16,
  terms = tensorsketch { d = 16, degree = 1, size = 32, heads = 1,
                         index_hash = npy "index_hash.npy", bit_hash = npy "bit_hash.npy" },
}
