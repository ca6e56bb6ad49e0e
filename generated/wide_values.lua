-- A head whose values are wide enough for parallel_output, which no head of specs/ has.
return head { name = "inhomogeneous2_d32_v256", d = 32, dv = 256, dtype = "bf16",
              terms = inhomogeneous { degree = 2, constant = 1 } }
