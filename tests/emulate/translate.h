/* translate: an emitted CUDA file -> C++ that runs on the CPU, for tests. */
#ifndef FPAC_TESTS_EMULATE_TRANSLATE_H
#define FPAC_TESTS_EMULATE_TRANSLATE_H

/* Inline assembly becomes calls: `mul.rn.bf16x2 %0, %1, %2;` is ptx_mul_rn_bf16x2(...) with the operands in
 * the order in which the instruction names them. Predicates, labels and branches become C++'s. The file
 * includes ptx.h and launch.h. malloc'ed; NULL with *reason where the assembly is of another shape than this
 * reads. */
char *emulate_translate(const char *code, const char **reason);

#endif
