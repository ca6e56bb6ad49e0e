/* simplify_passes: declarations that the passes of simplify share; private to the folder.
 *
 * A *symbol* is s_(source,row) = (row q)(row k), a *linear form* a sum of gram * symbol over rows of one source
 * (an fpa_branch), an *expression* a polynomial in linear forms. The head, its features and its score are
 * expressions of one kernel, and each pass turns one expression into another. */
#ifndef FPAC_GEN_SIMPLIFY_PASSES_H
#define FPAC_GEN_SIMPLIFY_PASSES_H

#include "polynomial.h"
#include "simplify.h"
#include "gram.h"

typedef struct fpa_expression {
    int form_count, form_capacity;
    fpa_branch *forms; /* distinct linear forms: the polynomial's variables */
    int *slots;        /* [slot_count] hash table of forms: index + 1, 0 when free */
    size_t slot_count;
    fpa_polynomial polynomial;
} fpa_expression;

typedef struct fpa_simplifier {
    arena scratch; /* temporary expressions and matrices */
    const fpa_head *written;
    int matrix_count, matrix_capacity;
    fpa_matrix *matrices; /* the head's matrices, then those that passes have made */
    fpa_simplified *simple;
    int matrix_notes; /* notes on single matrices so far; only the first few are kept */
    fpa_error *error;
} fpa_simplifier;

/* --- notes.c: lines for explain --- */

/* Append a line to simple->notes, or to simple->warnings. False: no memory. */
bool simplify_note(fpa_simplifier *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool simplify_warn(fpa_simplifier *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- range.c: float32's range --- */

/* Replaces s->written by an equal head whose scale, weights and matrices have ordinary sizes, if they have not and
 * can have. False: no memory. */
bool range_fold(fpa_simplifier *s);
/* UNSUPPORTED if all weights of a kernel are below float32's range, or one is above it. */
fpa_status range_check(fpa_simplifier *s, const fpa_expression *e);

/* --- warnings.c --- */

/* Warnings about the finished result; fewest: D of the same kernel with blocks of 1. False: no memory. */
bool warn_result(fpa_simplifier *s, double fewest);

/* --- linear.c: linear forms and expressions. false: no memory --- */

/* Computes *form and *scale with branch == *scale * *form. form has ascending rows and positive weights, and
 * proportional branches have the same form: equal weights become none, others coprime integers if these are small.
 * form->width 0: the branch is zero. */
bool linear_normalize(arena *memory, const fpa_branch *branch, fpa_branch *form, fpa_number *scale);
fpa_number linear_gram(const fpa_branch *form, int w); /* 1 where there are no weights */

bool expression_init(fpa_expression *e, arena *memory, int degree);
/* The index of a normalised form in e, to which it is added if it is new; -1: no memory. */
int expression_intern(fpa_expression *e, const fpa_branch *form);
/* The expression of a head's terms, branches normalised, like terms collected. */
bool expression_of_terms(fpa_expression *e, arena *memory, const fpa_term *terms, int count);
/* mapped = e with every form f replaced by scales[f] * forms[f] (width 0: zero). */
bool expression_map(const fpa_expression *e, arena *memory, const fpa_branch *forms, const fpa_number *scales,
                    fpa_expression *mapped);
/* Index of the symbol of row 0 for each source: [count + 2], by source + 1; the last element is the number of
 * symbols. */
size_t *symbol_offsets(arena *memory, int d, const fpa_matrix *matrices, int count);

/* --- matrix.c: zero rows, diagonal Grams, rank, Grams equal up to scale --- */

/* reduced = e over smaller or fewer constant matrices; new ones are appended to s->matrices. */
bool matrix_reduce(fpa_simplifier *s, const fpa_expression *e, fpa_expression *reduced);

/* dense = the form's rows of the input or of a constant matrix, times the roots of its weights. dense->w is NULL
 * if their squares may leave the range of doubles; the form is not changed then. */
bool matrix_rows(fpa_simplifier *s, const fpa_branch *form, fpa_dense *dense);
/* Append a constant matrix to s->matrices. */
bool matrix_add(fpa_simplifier *s, const fpa_dense *dense);

/* --- joint.c: joint diagonalisation --- */

typedef struct fpa_joint {
    int forms;       /* number of forms that became diagonal */
    int rows;        /* number of rows of the new matrices */
    double residual; /* largest residual of a Gram */
} fpa_joint;

/* joint = e with the forms of a monomial over the rows of a common matrix, if their Grams can be diagonalised
 * together: any two, or a commuting set. */
bool joint_diagonalize(fpa_simplifier *s, const fpa_expression *e, fpa_expression *joint, fpa_joint *result);

/* --- atoms.c: the polynomial in sums of symbols that the kernel cannot tell apart --- */

/* The most products that are multiplied out; 64^3 = 262144 of three diagonals fit. */
enum { MAX_PRODUCTS = 300000 };

/* atoms = e in terms of atoms, forms that share no symbol. *done false: there would be too many products. */
bool atoms_expand(fpa_simplifier *s, const fpa_expression *e, fpa_expression *atoms, bool *done);

/* --- merge.c --- */

/* Atoms A and B with dP/dB = beta dP/dA, beta > 0, become the one form A + beta B. */
bool atoms_merge(fpa_simplifier *s, const fpa_expression *atoms, fpa_expression *merged);

/* --- features.c: expression -> terms of blocked symmetric features --- */

typedef struct fpa_feature_count {
    double features; /* D */
    double terms;
} fpa_feature_count;

/* The number of features and terms that features_build makes; the halves of squares of blocks are terms of their
 * own. */
fpa_feature_count features_count(const fpa_expression *e, int block);
/* The block to use: `wanted`, or if that is 0 the largest one with not too many features (for blocks of 8, 1.4
 * times the minimum). */
int features_block(const fpa_expression *e, int wanted);
/* The kind under which a user would have written such a branch; its source is an index of head->matrices. */
fpa_branch_kind features_branch_kind(const fpa_head *head, const fpa_branch *branch);
/* Sets head->terms and head->block; branches share the rows of e's forms. */
bool features_build(const fpa_expression *e, int block, fpa_head *head);

/* --- score.c --- */

/* *cost: operations of one score. False: no memory. */
bool score_cost(arena *memory, const fpa_expression *e, double *cost);
/* Builds the score in `memory`. UNSUPPORTED: the polynomial is absurdly large. */
fpa_status score_build(fpa_simplifier *s, const fpa_expression *e, arena *memory, fpa_score *score);

/* --- identity.c: proof that two expressions are one kernel --- */

typedef struct fpa_sum {  /* one of the representations of a kernel; the other pointers are NULL */
    const fpa_head *head; /* its terms */
    const fpa_expression *expression;
    const fpa_score *score;
    const size_t *offsets; /* its symbols: offsets[source + 1] + row */
} fpa_sum;

/* REFUSED unless a and b are the same polynomial in the symbols, which are compared modulo 2^61 - 1 at random
 * points. If a number has no value, or an earlier pass was out of memory, that error. */
fpa_status identity_check(fpa_simplifier *s, const char *what, fpa_sum a, fpa_sum b);

/* --- text.c: what explain and the dump say --- */

/* The kernel as text: "k = (q.k)^2 + 2 s2", cut if it is long. */
enum { KERNEL_TEXT = 240 };
void kernel_text(char text[KERNEL_TEXT], const fpa_head *head, const fpa_expression *e);

#endif
