-- Heads without a mask, as encoders have them: every token sees all keys.
--
-- Short sequences take the parallel form; from the crossover on the state of the whole sequence is
-- summed first, then every query reads it, so that the cost grows with the length alone.

return head {
         name = "nomask_power2_d64", d = 64, dv = 64, causal = false,
         terms = power { degree = 2 },
         normalize = { "sum", eps = 1e-6 },
       },
       head {
         name = "nomask_taylor2_d16", d = 16, dv = 64, causal = false,
         scale = 1 / sqrt(16),
         terms = taylor { degree = 2 },
         normalize = { "sum", eps = 1e-6 },
       },
       head {
         name = "nomask_power2_d64_bf16", d = 64, dv = 64, causal = false, dtype = "bf16",
         terms = power { degree = 2 },
         normalize = { "sum", eps = 1e-6 },
       }
