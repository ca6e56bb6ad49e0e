/* launch_passes_operands: the operands and results of passes: tensors as given, or rows of the workspace as last gathered. */
#ifndef FPAC_RUNTIME_CUDA_LAUNCH_PASSES_OPERANDS_H
#define FPAC_RUNTIME_CUDA_LAUNCH_PASSES_OPERANDS_H

#include "launch_passes_sizes.h"

/* An operand or the result of a pass, of 16-bit numbers. */
typedef struct pass_tensor {
    char *at;
    int64_t stride[3]; /* batch, token, head */
} pass_tensor;

/* A tensor of the call, from the first sequence in flight on. base NULL: none. */
pass_tensor pass_given(const passes *p, int64_t heads, const void *base, const int64_t stride[3]);
/* A launch over all tokens of the sequences in flight, without log-gates. */
struct fpa_launch pass_launch_of(const passes *p, const pass_tensor *q, const pass_tensor *k,
                                 const pass_tensor *v, const pass_tensor *o);
/* The same for gathered rows: over as many tokens as were gathered, with gathered log-gates. */
struct fpa_launch pass_launch_of_rows(const passes *p, const pass_tensor *q, const pass_tensor *k,
                                      const pass_tensor *v, const pass_tensor *o);
/* Whether a pass reads operands as given. If f' is constant and nothing is divided, its rows are d_o and v. */
bool pass_is_plain(const passes *p, fpa_pass pass);
/* Whether the pass for d_q reads d_o, v and log-gates as given: for a linear head its rows have no other numbers. */
bool pass_has_plain_values(const passes *p);
/* Whether it also reads q and k as given, which it does not if they have weights. */
bool pass_is_plain_forth(const passes *p);
/* Whether the results of a reversed pass are the gradients of keys. */
bool pass_is_direct(const passes *p);

/* Whether results must be converted to gradients, also for d_q: gradients of product rows, or bf16 in an f16 head. */
bool pass_scatters(const passes *p);
/* Gathered rows of queries, or of keys, from a column on: operands of dots and values of a pass. */
pass_tensor pass_query_rows(const passes *p, int column);
pass_tensor pass_key_rows(const passes *p, int column);
/* Rows of the workspace for a result of `width` numbers, padded to a multiple of 8. */
pass_tensor pass_result_rows(const passes *p, int width);
/* Operands of a contraction and of the pass of values before it: vectors, values, and rows g. As given (p->given, p->given_values), else
 * as gathered. */
pass_tensor pass_query_vectors(const passes *p);
pass_tensor pass_key_vectors(const passes *p);
pass_tensor pass_query_values(const passes *p);
pass_tensor pass_key_values(const passes *p);
/* Sets a launch's log-gates as given. */
void pass_set_gates(const passes *p, struct fpa_launch *pass);
/* The same tensor in reverse order of tokens. */
pass_tensor pass_turned(const passes *p, pass_tensor t);
/* The launch for d_k or d_v from operands as given. */
struct fpa_launch pass_launch_of_given(const passes *p, fpa_pass pass);
/* Whether a reversed pass stores a gradient directly, without a scatter. */
bool pass_leaves_directly(const passes *p, fpa_pass pass);
/* The launch for d_k or d_v from gathered rows. */
struct fpa_launch pass_launch_back(const passes *p, fpa_pass pass);

/* Finds whether the states that the two passes of rows store, in forward and in reverse order of tokens, have their columns in the same
 * order, as state_product requires, if the copy engine's maps describe the rows of all heads as one. Both passes then read operands as
 * given, whose addresses must be equal modulo 16 bytes (templates/hopper/fused_rows_lean.cu.in). Values are k in the forward pass and q
 * in the reversed one; vectors are d_o and v in both. given: the reversed pass reads operands as given. */
void pass_find_leaning(passes *p, bool given);

#endif
