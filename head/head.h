/* head: one attention head as data: what is computed, not how.
 *
 *   k(q,k) = sum over terms  weight * prod over branches (W q).(W k)
 *   o_t    = sum over j of  exp(G_t - G_j) k(scale q_t, k_j) v_j   [/ normaliser]
 *
 * With a window of w, the newest w keys, the token's own included, have the weight exp(scale q_t . k_j) instead.
 *
 * ("The FPA Kernel" of the paper that runtime/api/fpa.h names; terms are the Appendix's "heads", which are summed.)
 * Given: terms, branches and matrices from whoever builds a head, or its canonical text. Gives: the rules that
 * a head must obey, its canonical text and digest, and its figures. It knows no target and no kernel.
 * A head lives in one arena; every pointer below points into it. */
#ifndef FPAC_HEAD_HEAD_H
#define FPAC_HEAD_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/error.h"
#include "number.h"

/* Kinds of matrices from which branches select rows. */
typedef enum fpa_matrix_kind {
    FPA_MATRIX_CONSTANT,           /* data given in the spec */
    FPA_MATRIX_TRAINABLE,          /* given at run time: [rows, cols], or [heads, rows, cols] */
    FPA_MATRIX_TRAINABLE_DIAGONAL, /* given at run time: [cols], or [heads, cols]; row i is w_i e_i */
} fpa_matrix_kind;

typedef struct fpa_matrix {
    fpa_matrix_kind kind;
    char *name;    /* trainable: the name under which callers give its values; constant: NULL */
    int rows;      /* a diagonal has rows == cols */
    int cols;      /* the head's d; of a matrix of a lift: the lift's width, or as in lift.h */
    bool per_head; /* each key/value head has its own; else all share it */
    int heads;     /* constant matrices of a lift that differ by head: the number of heads; else 0 */
    double *data;  /* constant: [heads,] rows x cols, row-major; else NULL */
} fpa_matrix;

/* How the user wrote a branch: for messages, explain and tests. */
typedef enum fpa_branch_kind {
    FPA_BRANCH_IDENTITY,
    FPA_BRANCH_SELECT,
    FPA_BRANCH_DIAGONAL,
    FPA_BRANCH_DENSE,
    FPA_BRANCH_TRAINABLE,
    FPA_BRANCH_TRAINABLE_DIAGONAL,
    FPA_BRANCH_COORDINATES, /* the coordinates of one part of the lift */
    FPA_BRANCH_KINDS
} fpa_branch_kind;

enum { FPA_INPUT = -1 }; /* source of a branch that selects from the input vector itself */

/* One factor of a term:  sum over w < width of gram[w] * (row_w q)(row_w k),
 * where row_w is row[w] of the source (of the identity for FPA_INPUT). A diagonal
 * entry g enters as its Gram weight g*g, so sqrt2 is the exact number 2. */
typedef struct fpa_branch {
    fpa_branch_kind kind;
    int source;       /* FPA_INPUT, or an index of head->matrices */
    int width;        /* d_l, >= 1 */
    int *row;         /* [width] rows of the source, 0-based, each at most once */
    fpa_number *gram; /* [width] >= 0, or NULL: all 1 */
} fpa_branch;

/* The weight of row i in the dot product of both sides. */
static inline double branch_gram(const fpa_branch *branch, int i)
{
    return branch->gram ? branch->gram[i].value : 1;
}

typedef struct fpa_term {
    fpa_number weight; /* any sign */
    int branch_count;  /* 0: the constant 1 */
    /* [branch_count]; the term's features are their Kronecker product, last branch fastest */
    fpa_branch *branches;
} fpa_term;

typedef enum fpa_normalize {
    FPA_NORMALIZE_NONE,         /* o = sum                       */
    FPA_NORMALIZE_SUM,          /* o = sum / (den + eps)         */
    FPA_NORMALIZE_MAX,          /* o = sum / max(den, eps)       */
    FPA_NORMALIZE_ONE_PLUS_SUM, /* o = sum / (1 + den)           */
    FPA_NORMALIZE_KINDS         /* den: the same sum with v = 1  */
} fpa_normalize;

/* How CUDA kernels multiply f32 operands; C kernels always multiply in float32. */
typedef enum fpa_products {
    FPA_PRODUCTS_PLAIN,  /* float32 */
    FPA_PRODUCTS_TF32X3, /* tensor cores, each factor split in two; dtype f32 only */
    FPA_PRODUCTS_KINDS
} fpa_products;

typedef struct fpa_lift fpa_lift; /* lift.h */

typedef struct fpa_head {
    arena memory; /* owns everything below */
    char *name;   /* [A-Za-z_][A-Za-z0-9_]*, at most 63 bytes: a C identifier */
    char *origin; /* "specs/mine.lua:12", for messages; not part of the digest */
    int note_count;
    /* [note_count] remarks of the families that made its terms, shown by explain; not part of the digest */
    const char **notes;
    /* number of coordinates that branches select from, without a lift the width of q and k (head_width); width of
     * v and o */
    int d, dv;
    fpa_lift *lift; /* how coordinates are computed from q and k; NULL: they are q and k */
    int matrix_count;
    fpa_matrix *matrices; /* [matrix_count] */
    int term_count;
    fpa_term *terms; /* [term_count], summed */
    int block;       /* block of symmetric features in the state; 0: chosen (head_block) */
    int chunk;       /* tokens between state updates in the chunked form; 0: chosen by the plan */
    bool causal;     /* token t sees keys j <= t, else all */
    double scale;    /* factor of q as given; without a lift a term of n branches is multiplied by scale^n */
    fpa_normalize normalize;
    double eps; /* of FPA_NORMALIZE_SUM and _MAX */
    /* each token has a log-gate g_t: the state is multiplied by exp(g_t) before token t is added */
    bool gate;
    fpa_dtype dtype;       /* of q, k, v, o */
    fpa_dtype state_dtype; /* type of the initial and final state; sums in between are fp32 */
    fpa_products products;
    /* The fields up to `narrows` are set only for heads whose forward passes are gradients of another head
     * (gen/plan/passes.h). They are not part of the text: such heads have names that tell them apart.
     * numbers: each token has a factor and a number beside it. */
    bool numbers;
    /* that number is in columns after queries and keys */
    bool beside;
    /* o may be added to what is stored, which another part of the values has computed */
    bool adds;
    /* coordinates of q and k that no branch selects are zero */
    bool zeros;
    /* a pass of bf16 for an f16 head: o may be stored as f16 */
    bool narrows;
    int window; /* newest keys with the weight exp(scale q.k), of q and k as given; 0: no window */
} fpa_head;

enum {
    HEAD_MAX_WIDTH = 1024,          /* width of q, k and v */
    HEAD_MAX_COORDINATES = 1 << 14, /* d of a head with a lift */
    HEAD_MAX_BRANCHES = 16,         /* degree of a term */
    HEAD_MAX_TERMS = 1 << 17,
    HEAD_MAX_MATRICES = 4096,
    HEAD_MAX_NAME = 63,
    HEAD_MAX_WINDOW = 512,
    HEAD_MAX_ROWS = 1 << 16,   /* rows of one matrix */
    HEAD_MAX_LISTED = 1 << 22, /* rows that all branches list together */
};

/* A new head with defaults (dv = d = 0, no terms, causal, scale 1, eps 1e-6, f32, plain products), or NULL: no
 * memory. */
fpa_head *head_new(void);
void head_free(fpa_head *head); /* NULL is fine */

/* Checks every rule for heads, on which later stages rely, however the head was made. FPA_INVALID: the message
 * names term, branch and row, counted from 1. */
fpa_status head_validate(const fpa_head *head, fpa_error *error);
/* The same for a polynomial of coordinates that are computed elsewhere: like a head with a lift, it may have d up
 * to HEAD_MAX_COORDINATES. */
fpa_status head_validate_polynomial(const fpa_head *head, fpa_error *error);

/* The canonical text (format: text.c): one field a line, the format's version on line 1, numbers exact (matrices
 * in hexadecimal floating point). Equal heads have equal bytes. It is used for the dump, generated headers,
 * bundles and the digest. head_print returns malloc'ed text (NULL: no memory). head_parse(head_print(h)) equals h;
 * any other text is refused with the line's number. */
char *head_print(const fpa_head *head);
fpa_status head_parse(const char *text, size_t size, fpa_head **head, fpa_error *error);

/* A copy by way of the canonical text, which contains all of a head. The caller frees it (head_free). */
fpa_status head_copy(const fpa_head *head, fpa_head **copy, fpa_error *error);

/* SHA-256 of the canonical text, in hexadecimal. */
enum { DIGEST_TEXT = 65 };
fpa_status head_digest(const fpa_head *head, char digest[DIGEST_TEXT], fpa_error *error);

/* C(d+n-1, n): the number of monomials of degree n in d variables. */
double monomial_count(int d, int n);

/* Width of q and k as callers give them. */
int head_width(const fpa_head *head);
/* The number of matrices whose entries are given at run time. */
int head_run_time_matrices(const fpa_head *head);

/* Figures of a head as written: */
int head_degree(const fpa_head *head);      /* largest branch count */
double term_features(const fpa_term *term); /* product of its branches' widths */
double head_features(const fpa_head *head); /* D, of all terms */
/* Features that suffice for any kernel with terms of the head's degrees: the number of distinct monomials, the sum
 * of C(d+n-1, n) over degrees n. */
double head_features_bound(const fpa_head *head);
double head_features_tpow(const fpa_head *head); /* sum over degrees of d^n */

const char *normalize_name(fpa_normalize kind);   /* "none", "sum", "max", "one_plus_sum" */
const char *products_name(fpa_products products); /* "plain", "tf32x3" */
const char *branch_kind_name(fpa_branch_kind kind);

/* The heads of one spec file, in the order written, and the layers that it defines of them (layer.h). */
typedef struct fpa_head_list {
    int count;
    fpa_head **heads;
    int layer_count;
    struct fpa_layer_spec *layers; /* [layer_count] */
} fpa_head_list;

void head_list_free(fpa_head_list *list);
/* Keep only the head with this index; the other heads and all layers are freed. */
void head_list_keep(fpa_head_list *list, int head);
/* Find the head of that name; name NULL: the only one. Errors list the names that exist. */
fpa_status head_list_find(const fpa_head_list *list, const char *name, const char *where,
                          const fpa_head **head, fpa_error *error);

#endif
