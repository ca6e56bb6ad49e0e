/* reference: the formula in double precision, directly from the head as the user wrote it.
 *
 * It never sees a plan, a simplified head or emitted code, so that no mistake in these can affect both sides of a
 * comparison. It is the definition; it is not fast.
 * Given: a head as written, and operands. Gives: results with the magnitudes that bound their errors, and the
 * results of plain arithmetic of the same precision (plain.c). */
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
    const double *positions; /* [batch, length, positions of the head's lift]; NULL: it has none */
    /* [batch, length]; 0: the key's k and v are ignored, but its log-gate counts. NULL: no key is masked */
    const unsigned char *key_mask;
    /* by matrix index of the head, NULL for constants; each [heads,] rows, cols ([heads,] cols if diagonal) */
    const double *const *weights;
    /* [batch, length, query_heads]: outputs to compute; others are not written. NULL: all */
    const unsigned char *wanted;
    /* type of the factors of an emitted kernel's products; sums are float. The formula is exact whatever it is;
     * the plain evaluations round to it, and magnitudes include the absolute errors of F16's smallest numbers */
    fpa_dtype arithmetic;
    /* type to which the plain evaluations round coordinates of a lift; mostly the same */
    fpa_dtype coordinates;
} fpa_problem;

/* Compute o: [batch, length, query_heads, dv]. magnitude (may be NULL), of the same shape: the size that o would
 * have without cancellation, sum_j exp(G_t-G_j) sum_terms |weight| prod_l |W q|.|W k| |v_j| (if the products of a
 * row with x cancel, the root of their summed squares replaces |W x|), divided by the absolute value of the same
 * normaliser, plus |o| times the normaliser's own magnitude over its absolute value. INVALID, with the token: a
 * normaliser is zero. */
fpa_status reference_forward(const fpa_problem *problem, double *o, double *magnitude, fpa_error *error);

/* Compute the normaliser of each output, [batch, length, query_heads] (1 without normalisation), and its
 * condition: its magnitude over its absolute value, infinite if it is zero. */
fpa_status reference_normalizer(const fpa_problem *problem, double *value, double *condition,
                                fpa_error *error);

/* Compute peak: [batch, length, query_heads]: the largest number among the scores of the keys that an output sees
 * and the products of these keys' rows. The largest number of half precision is 65504. */
fpa_status reference_peak(const fpa_problem *problem, double *peak, fpa_error *error);

/* The formula in plain float, score by score, rounded at every operation: the result of an implementation without
 * any care, for verify's second criterion. In narrower arithmetic, rows and scores are also rounded to that, as
 * factors of products. */
fpa_status reference_plain(const fpa_problem *problem, float *o, fpa_error *error);

/* The same, feature by feature and token by token (explicit phi, running state), for the first `columns` columns
 * of v. In narrower arithmetic rows and features are rounded to that after each multiplication; the state is
 * float, and queries read it rounded to bf16, with features in bf16, since half precision has no range for sums.
 * o: [batch, length, query_heads, columns]. */
fpa_status reference_plain_features(const fpa_problem *problem, int columns, float *o, fpa_error *error);

/* Operations of an evaluation: of one score, of the features of the terms, and of the coordinates of one token (of
 * a lift). What contributes nothing is not counted: rows of weight 0, and terms that are 0. */
typedef struct fpa_reference_size {
    double score, features, token;
} fpa_reference_size;

fpa_status reference_size(const fpa_head *head, fpa_reference_size *size, fpa_error *error);

/* ---- gradients: pair by pair, by the product rule, never from states ---- */

/* One array for each operand, with its shape in the problem, in double. NULL: not wanted. */
typedef struct fpa_gradients {
    double *q, *k, *v;
    double *log_gate;
    /* For the plain evaluation, both or neither: the gradients of log-gates without the rounding errors of a
     * running sum's terms, and the sum of the squares of these errors, which are as likely positive as negative. */
    double *log_gate_whole, *log_gate_carried;
    double *const *weights; /* by matrix index of the head; NULL, or with NULL entries: not wanted */
} fpa_gradients;

/* Inputs of a backward pass in addition to the problem. */
typedef struct fpa_saved {
    const double *d_o; /* [batch, length, query_heads, dv]: the gradient of o */
    /* The results of the forward pass, as stored: o like d_o, and the sums of scores from which normalisers are
     * computed, [batch, length, query_heads]. NULL: the formula's own. */
    const double *o, *den;
    /* tokens after which a running sum of log-gates' gradients is begun anew, counted from the first token */
    int64_t span;
} fpa_saved;

/* Compute the gradients that are wanted. magnitude (may be NULL, else with the same arrays): the same sums without
 * cancellation, to which errors are relative; for log-gates also the error of a running sum over a span, which
 * adds and subtracts the parts of other tokens. UNSUPPORTED: the head has a window. */
fpa_status reference_gradient(const fpa_problem *problem, const fpa_saved *backward,
                              const fpa_gradients *gradient, const fpa_gradients *magnitude,
                              fpa_error *error);

/* The same in plain float, rounded at every operation, with log-gates by a running sum over each span. */
fpa_status reference_gradient_plain(const fpa_problem *problem, const fpa_saved *backward,
                                    const fpa_gradients *gradient, fpa_error *error);

#endif
