/* launch_passes_operands: operands and results of passes, as they are given or as they were gathered last, and which are which. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PASSES_OPERANDS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PASSES_OPERANDS_H

#include "launch_passes_sizes.h"

/* An operand or the result of a pass. */
typedef struct pass_tensor {
    char *at;
    int64_t stride[3]; /* batch, token, head */
} pass_tensor;

pass_tensor pass_given(const passes *p, int64_t heads, const void *base, const int64_t stride[3]);
struct fpa_launch pass_launch_of(const passes *p, const pass_tensor *q, const pass_tensor *k,
                                 const pass_tensor *v, const pass_tensor *o);
/* The same of rows that were gathered, as many as these are, with their gates. */
struct fpa_launch pass_launch_of_rows(const passes *p, const pass_tensor *q, const pass_tensor *k,
                                      const pass_tensor *v, const pass_tensor *o);
/* Of operands as they are given. Where f' is constant and nothing is divided, rows are d_o and v. */
bool pass_is_plain(const passes *p, fpa_pass pass);
/* Whether d_q takes d_o and v as they are given, log-gates too: rows of a line have no other number. */
bool pass_has_plain_values(const passes *p);
/* And q and k, which gathered ones have weights beside. */
bool pass_is_plain_forth(const passes *p);
/* Whether results from the last token on are a key's gradients as they are. */
bool pass_is_direct(const passes *p);

/* Whether results are others than gradients, d_q too: of product rows, or of bf16 where these are of f16. */
bool pass_scatters(const passes *p);
/* Numbers of the rows of queries, or of keys, that the dots and values of a pass have. */
pass_tensor pass_query_rows(const passes *p, int column);
pass_tensor pass_key_rows(const passes *p, int column);
pass_tensor pass_result_rows(const passes *p, int width);
/* Vectors, and values or rows g, of a contraction and what comes before it: as they are given (p->given, p->given_values) or were gathered. */
pass_tensor pass_query_vectors(const passes *p);
pass_tensor pass_key_vectors(const passes *p);
pass_tensor pass_query_values(const passes *p);
pass_tensor pass_key_values(const passes *p);
/* Log-gates of sequences as they are given. */
void pass_set_gates(const passes *p, struct fpa_launch *pass);
/* The same tensor from its last token on. */
pass_tensor pass_turned(const passes *p, pass_tensor t);
/* d_k or d_v of plain operands. */
struct fpa_launch pass_launch_of_given(const passes *p, fpa_pass pass);
/* Whether a pass back leaves a gradient as it is; d_k or d_v of rows as they were gathered. */
bool pass_leaves_directly(const passes *p, fpa_pass pass);
struct fpa_launch pass_launch_back(const passes *p, fpa_pass pass);

/* Finds whether the states that the two passes of rows store, in forward and in reverse order of tokens, have their columns
 * at the same places, as state_product needs it, if the copy engine's maps describe the rows of all heads as one: both
 * passes then read operands as given, which must begin equally far behind a multiple of 16 bytes
 * (templates/hopper/fused_rows_lean.cu.in). Values are k in the forward pass and q in the other; vectors are d_o and v in
 * both. given: the pass in reverse order reads operands as given. */
void pass_find_leaning(passes *p, bool given);

#endif
