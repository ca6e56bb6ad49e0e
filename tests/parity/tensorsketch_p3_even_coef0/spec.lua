-- y = [sqrt(gamma) x, sqrt(coef0)]; c_l[n] = sum_{i: index_hash[h,l,i]=n} bit_hash[h,l,i] y[i], l < p, n < N;
-- phi(x) = real(ifft(prod_l fft(c_l))) (circular convolution of the p count sketches); w_ij =
-- phi(q_i).phi(k_j); o_i = sum_{j<=i} w_ij v_j
return head {
  name = "tensorsketch_p3_even_coef0", d = 16, dv = 32,
  terms = tensorsketch { d = 16, degree = 3, size = 128, gamma = 0.25, constant = 1.0, heads = 2,
                         index_hash = npy "index_hash.npy", bit_hash = npy "bit_hash.npy" },
}
