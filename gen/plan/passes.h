/* passes: gradients of a head as forward passes of other heads.
 *
 * Where the kernel is a polynomial f of s = scale q.k alone, with g = d_o / n and h = -(o.d_o) n'(den) / n,
 *   dq_i = sum_{j <= i} f'(s_ij) scale (g_i.v_j + h_i) k_j
 *   dk_j = sum_{i >= j} f'(s_ij) scale (g_i.v_j + h_i) q_i
 *   dv_j = sum_{i >= j} f(s_ij) g_i:
 * heads of the rows [q, g, h] and [k, v, 1] whose kernels are products of two dots, and the head itself; sums over later
 * tokens are those of tokens in reverse order (docs/decisions/0032-gradients-as-forward-passes.md: the forward's own update and query on other operands).
 * Where f is of degree 2, the first two are the contraction of the state that the pass of values has anyway (NAME_chunk_contraction);
 * in the parallel form, where nothing but pairs of tokens is left of it, whatever its degree is.
 * Given: a simplified head. Gives: the heads, and how their rows lie. */
#ifndef FPAC_GEN_PLAN_PASSES_H
#define FPAC_GEN_PLAN_PASSES_H

#include "abi/source.h"
#include "gen/simplify/simplify.h"
#include "machine/target.h"
#include "pairs.h"

/* Columns of a gathered row: q or k, zeros up to `values`, g or v, then h or 1 where the head is normalised, zeros. */
typedef struct fpa_pass_rows {
    int values,
        width; /* whole pieces of 8; the second dot, and values that go with it, are over all of the latter */
    int parts,
        /* of values, and columns of one: passes of rows of a line have a part each (passes_parts.h); 1: there is
         * one pass of all */
        part;
    int columns; /* that the pass of values has */
    int input;   /* the first one that kernels of PASS_ROWS read: with f' constant, `values` */
    /* 1: f is a multiple of s: what queries read is q.d_q, what keys give k.d_k, and passes of rows leave both */
    int line;
    /* 1: s is a line of some coordinates, or with weights, which gathered keys have (passes_weigh), */
    int weighted;
    /* 1: of a normalised line nothing is gathered: 1 / n and h are a factor and a number beside each token
     * (call.numbers) */
    int numbers;
    /* 1: and h is columns behind d_o or v, since they are of f16, and what queries read is known with outputs */
    int beside;
    /* 1: q and k of passes are product rows (pairs.h), which are gathered, and whose gradients are joined as they
     * are scattered */
    int formed;
    /* 1: chunks have passes of rows, the parallel form has contractions (contracts_chunks): of few values, or of a
     * degree above 2 */
    int both;
    double slopes; /* features of f', of which passes of rows have each with all values */
    int parallel;  /* 1: they are the faster way in the parallel form alone: their features are too many */
    /* not 0: q and k of passes are so many features of them (feature_line.h), of which the kernel is a line */
    int features;
    /* 1: passes are of bf16, though the head is of f16: their operands are gathered, and their results scattered */
    int widened;
    /* or 1, with a gate and without a normaliser: which outputs of passes of rows get before their dots are made */
    int weighs;
} fpa_pass_rows;

/* Whether passes are the faster way: f is as above, products are of 16 bits by warpgroups, and the work is at most so much
 * more than the contraction's as its kernels are slower. */
bool passes_suit(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target);
fpa_pass_rows passes_rows(const fpa_simplified *simple);

/* Whether they are of a line of other numbers that the head's kernel is, whatever kernels there are for its own. */
bool passes_suit_lines(const fpa_head *head, const fpa_head *written, const fpa_target *target);

/* Where both are (rows->both): tokens from which on passes of rows in chunks multiply less than contractions of pairs. */
int64_t passes_crossover(const fpa_head *head, const fpa_pass_rows *rows, double features);

/* Of a polynomial of one dot; 0: the kernel is none. */
int passes_degree(const fpa_score *score);

/* Where passes are of pairs alone, of a polynomial of one dot: clocks of a multiprocessor for a query and a key of a head. */
double passes_pair_clocks(const fpa_head *head, const fpa_score *score);

/* Of such a line each coordinate's weight, 0 where it is none of the dot's. */
void passes_weigh(const fpa_score *score, int d, double *weight);

/* Whether only NAME_fused_chunk can compute this pass: for a gated linear head, whose outputs' dot products and
 * states it stores; with numbers beside tokens; for a part of the values, which is added to the output of other
 * parts. */
bool passes_by_rows(const fpa_head *head, fpa_pass pass);

/* Whether a pass of another gated head has to leave dots of its outputs, and states, for gates' gradients. */
bool passes_leaves_dots(const fpa_head *head, fpa_pass pass);

/* Whether NAME_chunk_contraction is wanted of a head that make passes: the pass of values, whose kernel is of degree 2, or more in the parallel form. */
bool passes_contract(const fpa_head *values);

/* Whether contractions take less than passes of rows in chunks, too, not in the parallel form alone: of degree 2, and not of few values, since each feature
 * is an FMA of both its factors, however few these are. */
bool contracts_chunks(const fpa_head *values);

/* Sizes that the contraction's sums have registers for; without a gate, features enough that the state is not better off in them. Of pairs alone, of a
 * higher degree, rows g are not in registers. */
bool contraction_fits(const fpa_head *values, int degree);

/* Whether a sum of several powers has so few values that a contraction, which works on each feature, takes longer
 * than passes of rows. */
bool contraction_of_few(int powers, int values, bool gate);

/* Of pairs alone: registers of a thread that has 16 tokens' queries and rows g as operands, beside dots, their operand and sums of gradients; with sums
 * of values, too. */
int contraction_held_registers(int d, int values, bool sums);

/* Whether the sums of gradients of 16 tokens have registers where features are coordinates (templates/cuda/
 * backward_coordinates.cu.in). */
bool coordinates_fit(const fpa_head *head);

/* The heads, both, also where one contracts. of_rows: q and k are rows that matrices make before, so that none is the head itself. With a gate or a normaliser the pass of values is not the head itself, and has columns of h, too: its
 * outputs' dots and its states' products are what the gate's gradient is made of. Of a line those of rows are, and the pass of values has the values
 * alone. On failure there are none. */
fpa_status passes_make(const fpa_simplified *simple, const fpa_head *written, bool of_rows,
                       fpa_passes *passes, fpa_error *error);
void passes_free(fpa_passes *passes);

#endif
