/* head: one attention head as data. What is computed, not how.
 *
 *   k(q,k) = sum over terms  weight * prod over branches (W q).(W k)
 *   o_t    = sum over j of  exp(G_t - G_j) k(scale q_t, k_j) v_j   [/ normaliser]
 *
 * and with a window of w the newest w keys, the token's own among them, have the weight exp(scale q_t . k_j) instead.
 *
 * ("The FPA Kernel" of the paper that runtime/api/fpa.h names; terms are the Appendix's "heads", which are summed.)
 * Given: terms, branches and matrices, by whoever builds a head, or its canonical text. Gives: the rules that
 * a head must obey, its canonical text and digest, and its figures. Knows no target and no kernel.
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

/* A matrix that branches take their rows from. */
typedef enum fpa_matrix_kind {
    FPA_MATRIX_CONSTANT,           /* data given in the spec */
    FPA_MATRIX_TRAINABLE,          /* given at run time: [rows, cols], or [heads, rows, cols] */
    FPA_MATRIX_TRAINABLE_DIAGONAL, /* given at run time: [cols], or [heads, cols]; row i is w_i e_i */
} fpa_matrix_kind;

typedef struct fpa_matrix {
    fpa_matrix_kind kind;
    char *name;    /* trainable: the name its values are given by; constant: NULL */
    int rows;      /* a diagonal has rows == cols */
    int cols;      /* the head's d; of a lift's: the lift's width, or what lift.h says */
    bool per_head; /* one a key/value head, else shared by all */
    int heads;     /* constant and per head (a lift's only): how many heads that is; else 0 */
    double *data;  /* constant: [heads,] rows x cols, row-major; else NULL */
} fpa_matrix;

/* What the user wrote, kept for messages, explain and tests. */
typedef enum fpa_branch_kind {
    FPA_BRANCH_IDENTITY,
    FPA_BRANCH_SELECT,
    FPA_BRANCH_DIAGONAL,
    FPA_BRANCH_DENSE,
    FPA_BRANCH_TRAINABLE,
    FPA_BRANCH_TRAINABLE_DIAGONAL,
    FPA_BRANCH_COORDINATES, /* of a part of the lift */
    FPA_BRANCH_KINDS
} fpa_branch_kind;

enum { FPA_INPUT = -1 }; /* a branch's source: the input vector itself */

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

/* What a product of row i's two sides is multiplied by. */
static inline double branch_gram(const fpa_branch *branch, int i)
{
    return branch->gram ? branch->gram[i].value : 1;
}

typedef struct fpa_term {
    fpa_number weight;    /* any sign */
    int branch_count;     /* 0: the constant 1 */
    fpa_branch *branches; /* [branch_count]; features: Kronecker product, last branch fastest */
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
    /* [note_count] what its families say of themselves, for explain; not part of the digest */
    const char **notes;
    int d, dv; /* coordinates that branches take, mostly q and k themselves (head_width); width of v and o */
    fpa_lift *lift; /* how coordinates are made of q and k; NULL: they are q and k */
    int matrix_count;
    fpa_matrix *matrices; /* [matrix_count] */
    int term_count;
    fpa_term *terms; /* [term_count], summed */
    int block;       /* block of symmetric features in the state; 0: chosen (head_block) */
    int chunk;       /* tokens between state updates of the chunked form; 0: the plan's choice */
    bool causal;     /* token t sees keys j <= t, else all */
    double scale;    /* multiplies q as it is given; without a lift a term of n branches gets scale^n */
    fpa_normalize normalize;
    double eps;            /* of FPA_NORMALIZE_SUM and _MAX */
    bool gate;             /* a log-gate a step: earlier state times exp(g_t) before token t enters */
    fpa_dtype dtype;       /* of q, k, v, o */
    fpa_dtype state_dtype; /* of the state given in and out; it runs in fp32 */
    fpa_products products;
    /* of forward passes that are gradients: a factor and a number beside each token (gen/plan/passes.h). Not part of
     * the text: such heads have names of their own */
    bool numbers;
    /* and that number as columns behind queries and keys: likewise not part of the text, but of the name */
    bool beside;
    /* of such passes: o may be added to what is there, of another part of values. Likewise not part of the text, but of
     * the name */
    bool adds;
    /* of such passes: coordinates that no branch has are zero, of queries and of keys. Likewise not part of the text */
    bool zeros;
    /* of such passes of bf16: of an f16 head, whose gradients o may be. Likewise not part of the text */
    bool narrows;
    int window; /* newest keys that have the weight exp(scale q.k), of q and k as given; 0: none has */
} fpa_head;

enum {
    HEAD_MAX_WIDTH = 1024,          /* of q, k, v */
    HEAD_MAX_COORDINATES = 1 << 14, /* d of a head with a lift */
    HEAD_MAX_BRANCHES = 16,         /* degree of a term */
    HEAD_MAX_TERMS = 1 << 17,
    HEAD_MAX_MATRICES = 4096,
    HEAD_MAX_NAME = 63,
    HEAD_MAX_WINDOW = 512,
    HEAD_MAX_ROWS = 1 << 16,   /* of one matrix */
    HEAD_MAX_LISTED = 1 << 22, /* rows that all branches list together */
};

/* A head with defaults (dv = d = 0, no terms, causal, scale 1, eps 1e-6, f32, plain), or NULL. */
fpa_head *head_new(void);
void head_free(fpa_head *head); /* NULL is fine */

/* Checks every rule for heads, however the head was made; later stages rely on it. The message names term, branch
 * and row (from 1). */
fpa_status head_validate(const fpa_head *head, fpa_error *error);
/* The same of a polynomial of coordinates that somebody has made: a lift makes more than q and k may have. */
fpa_status head_validate_polynomial(const fpa_head *head, fpa_error *error);

/* The canonical text: one field a line, the format's version on line 1, numbers exact
 * (matrices in hexadecimal floating point). Equal heads have equal bytes. It serves the dump,
 * generated headers, bundles and the digest. head_print returns malloc'ed text (NULL: no
 * memory); head_parse(head_print(h)) == h, and refuses anything else with its line. */
char *head_print(const fpa_head *head);
fpa_status head_parse(const char *text, size_t size, fpa_head **head, fpa_error *error);

/* Its canonical text is all of a head. */
fpa_status head_copy(const fpa_head *head, fpa_head **copy, fpa_error *error);

/* SHA-256 of the canonical text, in hexadecimal. */
enum { DIGEST_TEXT = 65 };
fpa_status head_digest(const fpa_head *head, char digest[DIGEST_TEXT], fpa_error *error);

/* C(d+n-1, n): monomials of degree n in d symbols; non-decreasing tuples of n out of d. */
double monomial_count(int d, int n);

/* Width of q and k as callers give them. */
int head_width(const fpa_head *head);
/* The number of matrices whose entries are given at run time. */
int head_run_time_matrices(const fpa_head *head);

/* Figures of a head as it stands. */
int head_degree(const fpa_head *head);      /* largest branch count */
double term_features(const fpa_term *term); /* product of its branches' widths */
double head_features(const fpa_head *head); /* D, of all terms */
/* Features that suffice for any kernel of the degrees that occur, their distinct monomials: sum of C(d+n-1, n). */
double head_features_bound(const fpa_head *head);
double head_features_tpow(const fpa_head *head); /* sum over degrees of d^n */

const char *normalize_name(fpa_normalize kind);   /* "none", "sum", "max", "one_plus_sum" */
const char *products_name(fpa_products products); /* "plain", "tf32x3" */
const char *branch_kind_name(fpa_branch_kind kind);

/* Several heads, as one spec file gives them, in the order written; and its layers of them (layer.h). */
typedef struct fpa_head_list {
    int count;
    fpa_head **heads;
    int layer_count;
    struct fpa_layer_spec *layers; /* [layer_count] */
} fpa_head_list;

void head_list_free(fpa_head_list *list);
/* Of the list this head alone, without layers. */
void head_list_keep(fpa_head_list *list, int head);
/* The head of that name; name NULL: the only one. The message lists the names there are. */
fpa_status head_list_find(const fpa_head_list *list, const char *name, const char *where,
                          const fpa_head **head, fpa_error *error);

#endif
