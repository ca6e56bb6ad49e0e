/* reference: the formula, in double precision, straight from the head as the user wrote it.
 *
 * It never sees a plan, a simplified head or emitted code, so that no mistake of theirs can
 * hide in both sides. It is the definition; it is not fast.
 * Given: a head as written and operands. Gives: results with the magnitudes that bound their errors, and what
 * plain arithmetic of the same precision makes of them (plain.c). */
#ifndef FPAC_RUNTIME_REFERENCE_REFERENCE_H
#define FPAC_RUNTIME_REFERENCE_REFERENCE_H

#include "abi/launch.h"
#include "head/head.h"

/* All arrays contiguous, C order, in double. */
typedef struct fpa_problem {
    const fpa_head *head;
    int64_t batch, length, query_heads, heads;
    const double *q;         /* [batch, length, query_heads, head_width(head)] */
    const double *k;         /* [batch, length, heads, head_width(head)] */
    const double *v;         /* [batch, length, heads, dv] */
    const double *log_gate;  /* [batch, length, heads], or NULL */
    const double *positions; /* [batch, length, positions of the head's lift], or NULL when it takes none */
    const unsigned char
        *key_mask; /* [batch, length], or NULL: all keys take part. 0: the key's k and v are not
                                      looked at, and its log-gate counts */
    const double *const *weights; /* by matrix index of the head; NULL entries for constants;
                                     each [heads,] rows, cols ([heads,] cols when diagonal) */
    const unsigned char *wanted;  /* [batch, length, query_heads]: outputs asked for; others are left
                                     as they are. NULL: all */
    fpa_dtype arithmetic;         /* what the factors of an emitted kernel's products are rounded to; sums
                                     are float. The formula is exact whatever it is: the plain evaluations
                                     round to it, and magnitudes are not below what F16 can tell from 0 */
    fpa_dtype coordinates;        /* what the plain evaluations round coordinates of a lift to; mostly the
                                     same */
} fpa_problem;

/* o: [batch, length, query_heads, dv]. magnitude (may be NULL), same shape: what o would be
 * without cancellation, sum_j exp(G_t-G_j) sum_terms |weight| prod_l |W q|.|W k| |v_j| (where the
 * products of a row with x cancel, the root of their summed squares stands for |W x|), divided
 * by the absolute value of the same normaliser, plus |o| times the normaliser's own magnitude
 * over its absolute value. Errors: INVALID with the token when a normaliser is zero. */
fpa_status reference_forward(const fpa_problem *problem, double *o, double *magnitude, fpa_error *error);

/* The normaliser of each output, [batch, length, query_heads] (1 without normalisation), and its
 * condition: its magnitude over its absolute value, infinite where it vanishes. */
fpa_status reference_normalizer(const fpa_problem *problem, double *value, double *condition,
                                fpa_error *error);

/* peak: [batch, length, query_heads]: the largest number among the scores of the keys that an
 * output sees and the products of these keys' rows. Half precision ends at 65504. */
fpa_status reference_peak(const fpa_problem *problem, double *peak, fpa_error *error);

/* The same formula in plain float, score by score, rounded at every operation: what an
 * implementation without any care would get. For verify's second criterion. In narrower
 * arithmetic rows and scores are rounded to that too, as factors of products. */
fpa_status reference_plain(const fpa_problem *problem, float *o, fpa_error *error);

/* The same in plain float, feature by feature and token by token (explicit phi, running state)
 * for the first `columns` columns of v. In narrower arithmetic rows and features are rounded to
 * that after each multiplication; the state runs in float, and queries read it rounded to bf16
 * with features in bf16: half precision has no range for sums. o: [batch, length, query_heads, columns]. */
fpa_status reference_plain_features(const fpa_problem *problem, int columns, float *o, fpa_error *error);

/* What evaluating a head takes: operations of one score, features of the terms, and operations that make the
 * coordinates of one token (of a lift); what adds nothing to the sum,
 * rows of weight 0 and all that is 0 with them, counts for nothing. */
typedef struct fpa_reference_size {
    double score, features, token;
} fpa_reference_size;

fpa_status reference_size(const fpa_head *head, fpa_reference_size *size, fpa_error *error);

/* ---- gradients: pair by pair, by the product rule, never from states ---- */

/* One array an operand, shaped as it is in the problem, in double. NULL: not wanted. */
typedef struct fpa_gradients {
    double *q, *k, *v;
    double *log_gate;
    /* Of the plain walk, both wanted or neither: of log-gates without the roundings of a running sum's terms, and the squares of
     * these that the sum carries, which each are as likely up as down. */
    double *log_gate_whole, *log_gate_carried;
    double *const *weights; /* by matrix index of the head; NULL, or with NULL entries: not wanted */
} fpa_gradients;

/* What a backward pass is given beside the problem. */
typedef struct fpa_saved {
    const double *d_o; /* [batch, length, query_heads, dv]: the gradient of o */
    /* What the forward pass saved, as it was stored: o like d_o, and the sum of scores by which the normaliser is made,
     * [batch, length, query_heads]. NULL: the formula's own. */
    const double *o, *den;
    /* tokens after which a running sum of log-gates' gradients is begun anew, counted from the first */
    int64_t span;
} fpa_saved;

/* Fills what is wanted of gradient. magnitude (may be NULL, else with the same arrays): the same sums without
 * cancellation, which errors are relative to; of log-gates with what a running sum over a span leaves of the parts that
 * it adds and takes off. UNSUPPORTED: of a head with a window. */
fpa_status reference_gradient(const fpa_problem *problem, const fpa_saved *backward,
                              const fpa_gradients *gradient, const fpa_gradients *magnitude,
                              fpa_error *error);

/* The same walk in plain float, rounded at every operation, log-gates by a running sum over each span. */
fpa_status reference_gradient_plain(const fpa_problem *problem, const fpa_saved *backward,
                                    const fpa_gradients *gradient, fpa_error *error);

#endif
