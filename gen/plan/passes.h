/* passes: gradients of a head as forward passes of other heads.
 *
 * If the kernel is a polynomial f of s = scale q.k alone, then with g = d_o / n and h = -(o.d_o) n'(den) / n,
 *   dq_i = sum_{j <= i} f'(s_ij) scale (g_i.v_j + h_i) k_j
 *   dk_j = sum_{i >= j} f'(s_ij) scale (g_i.v_j + h_i) q_i
 *   dv_j = sum_{i >= j} f(s_ij) g_i.
 * These are outputs of heads with rows [q, g, h] and [k, v, 1] as queries and keys: in the passes of rows (dq, dk) the
 * kernel is the product of f'(scale q.k) and the dot g.v + h, in the pass of values (dv) it is f. Sums over later tokens
 * are passes over the tokens in reverse order (docs/decisions/0032-gradients-as-forward-passes.md).
 * If f has degree 2, dq and dk can also be computed from the states that the pass of values has anyway
 * (NAME_chunk_contraction); in the parallel form, which has no states, for f of any degree.
 * Given: a simplified head. Gives: the heads of these passes, and the layout of their rows. */
#ifndef FPAC_GEN_PLAN_PASSES_H
#define FPAC_GEN_PLAN_PASSES_H

#include "abi/source.h"
#include "gen/simplify/simplify.h"
#include "machine/target.h"
#include "pairs.h"

/* Layout of a gathered row: q or k, zeros up to `values`, g or v, then h or 1 if the head is normalised, zeros. */
typedef struct fpa_pass_rows {
    /* columns before d_o or v; all columns, in whole pieces of 8. The dot g.v + h is that of the columns from
     * `values` on */
    int values, width;
    /* number of parts of the values, and columns of each part: the passes of rows of a line may be divided so
     * (passes_parts.h); 1: one pass has all columns */
    int parts, part;
    int columns; /* values of the pass of values: so many columns from `values` on */
    int input;   /* first column that kernels of PASS_ROWS read; `values` if f' is constant */
    /* 1: f is a multiple of s. The contributions to gates' gradients are q.d_q and k.d_k, and passes of rows store
     * both */
    int line;
    /* 1: s is a dot of some of the coordinates, or with weights, which are applied to gathered keys (passes_weigh) */
    int weighted;
    /* 1: a normalised line gathers nothing: 1 / n and h are a factor and a number beside each token (call.numbers) */
    int numbers;
    /* 1: these are f16: h is also in columns after d_o or v, and q.d_q is computed from the outputs */
    int beside;
    /* 1: q and k of passes are product rows (pairs.h): computed when operands are gathered; their gradients are
     * joined when results are scattered */
    int formed;
    /* 1: the chunked form uses passes of rows, the parallel form contractions (contracts_chunks): there are few
     * values, or the degree is above 2 */
    int both;
    double slopes; /* number of features of f', each of which passes of rows multiply by all values */
    /* 1: passes are faster than other kernels only in the parallel form: they have too many features for the
     * chunked one */
    int parallel;
    /* not 0: q and k of passes are so many features (feature_line.h), of which the kernel is a line */
    int features;
    /* 1: passes are bf16 although the head is f16: operands are converted when they are gathered, results when
     * they are scattered */
    int widened;
    /* 1: with a gate and without a normaliser, these weights are applied to the outputs of passes of rows, before
     * their dots are computed */
    int weighs;
} fpa_pass_rows;

/* Whether passes are the faster way: f is as above, the type has 16 bits, the target has warpgroups, and the work
 * exceeds that of the other kernels by no more than these are slower. */
bool passes_suit(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target);
fpa_pass_rows passes_rows(const fpa_simplified *simple);

/* The same for a head whose kernel is a line of other numbers than q and k (feature_line.h), whatever kernels
 * there are for its own kernel. */
bool passes_suit_lines(const fpa_head *head, const fpa_head *written, const fpa_target *target);

/* If rows->both: the length from which on passes of rows in chunks take fewer multiplications than contractions of
 * pairs. */
int64_t passes_crossover(const fpa_head *head, const fpa_pass_rows *rows, double features);

/* The degree of a polynomial of one dot; 0: the kernel is not one. */
int passes_degree(const fpa_score *score);

/* Clocks of a multiprocessor for a query and a key of a head, if gradients are contractions of pairs in the
 * parallel form. */
double passes_pair_clocks(const fpa_head *head, const fpa_score *score);

/* The weight of each coordinate in a line of some coordinates, or with weights; 0: the coordinate is not in the
 * dot. */
void passes_weigh(const fpa_score *score, int d, double *weight);

/* Whether only NAME_fused_chunk can compute this pass: of a gated linear head, whose dots of outputs and states it
 * stores; with numbers beside tokens; or of a part of the values, which it adds to the output of other parts. */
bool passes_by_rows(const fpa_head *head, fpa_pass pass);

/* Whether a pass of another gated head has to store dots of its outputs, and states, for the gradients of gates. */
bool passes_leaves_dots(const fpa_head *head, fpa_pass pass);

/* Whether the module of a pass of values needs NAME_chunk_contraction: its kernel is of degree 2, or higher in the
 * parallel form. */
bool passes_contract(const fpa_head *values);

/* Whether contractions are faster than passes of rows in the chunked form, too: of degree 2, and with enough
 * values, since a contraction takes one FMA per feature and factor, however few values there are. */
bool contracts_chunks(const fpa_head *values);

/* Whether the sums of a contraction fit into registers and, without a gate, there are enough features that a
 * separate kernel is worthwhile. For a degree above 2, pairs alone are contracted, and rows g are not in
 * registers. */
bool contraction_fits(const fpa_head *values, int degree);

/* Whether the kernel is a sum of several powers and has so few values that a contraction, whose work is per
 * feature, takes longer than passes of rows. */
bool contraction_of_few(int powers, int values, bool gate);

/* Contractions of pairs: registers of a thread that holds queries and rows g of 16 tokens as operands, with dots,
 * an operand made of scores and sums of gradients; sums: also those of values. */
int contraction_held_registers(int d, int values, bool sums);

/* Whether sums of gradients of 16 tokens fit into registers if features are coordinates
 * (templates/cuda/backward_coordinates.cu.in). */
bool coordinates_fit(const fpa_head *head);

/* The heads of the passes, except those that are forward passes of the head itself. There is one of passes of rows
 * even if the pass of values contracts, unless all gradients of q and k are contractions. of_rows: q and k are rows
 * that kernels make before, so that no pass is of the head itself. With a gate, or if it contracts, the pass of
 * values has all columns of [g, h]: the gate's gradient is computed from the dots of its outputs and the products of
 * its states. For a line these are those of passes of rows, and the pass of values has the values alone. On failure
 * there are no heads. */
fpa_status passes_make(const fpa_simplified *simple, const fpa_head *written, bool of_rows,
                       fpa_passes *passes, fpa_error *error);
void passes_free(fpa_passes *passes);

#endif
