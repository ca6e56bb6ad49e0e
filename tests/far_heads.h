/* far_heads: fields of heads at the ends of what can be computed, for tests on any target: what opens all the same, and
 * what is refused by its name. */
#ifndef FPAC_TESTS_FAR_HEADS_H
#define FPAC_TESTS_FAR_HEADS_H

#include <stdbool.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Legitimate, however far sums, ranks or half precision are stretched. */
static const char *const stretched_heads[] = {
    /* 15625 features: the parallel form reads a state by tiles and slices */
    "d = 5, dv = 8, terms = tspow { d = 5, degree = 6, block = 5 }",
    /* one feature of another size than the others, in the recurrent form */
    "d = 8, dv = 8, terms = { tspow { d = 8, degree = 5, block = 4 }, term {} }",
    /* outputs beyond f16 among those that the formula was not evaluated for */
    "d = 8, dv = 15, dtype = 'f16', chunk = 512, terms = inhomogeneous { degree = 5, constant = -1, "
    "weight = -2 }",
    /* a small row is a row */
    "d = 4, dv = 4, chunk = 64, terms = { term { dense { { 1, 1, 0, 0 }, { 0, 0, 3e-7, 3e-7 } } } }",
    "d = 4, dv = 4, terms = { term { dense { { 1, 1, 0, 0 }, { 2, 2, 0, 0 }, { 0, 0, 3e-7, 3e-7 } } } }",
    /* 1024 features, of which 11 are different: roundings of their sums agree */
    "d = 2, dv = 4, terms = tspow { d = 2, degree = 10, block = 2 }",
    /* as few as are alike enough */
    "d = 2, dv = 4, terms = tspow { d = 2, degree = 9, block = 2 }",
    /* coordinates and a dense branch in one basis, where inputs of few coordinates have many */
    "d = 32, dv = 64, scale = 1 / sqrt(32), terms = term { identity(), dense(orthogonal { d = 32, rows = 16, "
    "seed = 1 "
    "}) }",
};

/* FPA_REFUSED: "state_dtype f16 ends at 65504". */
static const char large_state_head[] =
    "d = 8, dv = 6, chunk = 64, state_dtype = 'f16', terms = power { degree = 2, weight = 10000 }";

/* Scales, weights and matrices far from 1, whose product is not. d = 6. */
struct far_head {
    const char *fields;
    double weight; /* of (q.k)^degree, all in all */
    int degree;
    bool normalized;
};

static const struct far_head harmless_heads[] = {
    {"scale = 1e20, terms = power { degree = 2, weight = 1e-40 }", 1, 2, false},
    {"scale = 1e30, terms = power { degree = 2, weight = 1e-60 }", 1, 2, false},
    {"scale = -1e-30, terms = power { degree = 3, weight = 1e90 }", -1, 3, false},
    {"scale = 1e-30, normalize = 'sum', eps = 0, terms = power { degree = 2 }", 1, 2, true},
    {"scale = 1e30, normalize = 'max', eps = 0, terms = power { degree = 4 }", 1, 4, true},
    {"scale = 2^-10, terms = power { degree = 2, weight = 2^90 }", 0x1p70, 2, false},
    {"terms = { term { diagonal { [range(1, 6)] = 1e30 }, weight = 1e-58 } }", 100, 1, false},
    {"terms = { term { dense { { 1e40, 0, 0, 0, 0, 0 }, { 0, 1e40, 0, 0, 0, 0 }, { 0, 0, 1e40, 0, 0, 0 }, "
     "{ 0, 0, 0, 0.6e40, 0.8e40, 0 }, { 0, 0, 0, 0.8e40, -0.6e40, 0 }, { 0, 0, 0, 0, 0, 1e40 } }, weight = "
     "1e-80 } }",
     1, 1, false},
};

/* FPA_UNSUPPORTED: "kernels compute in float32". d = 6. */
static const char *const heads_beyond[] = {
    "scale = 1e20, terms = power { degree = 2 }",
    "scale = 1e-320, terms = linear {}",
    "terms = linear { weight = 1e-60 }",
    "terms = { term { dense { { 1e25, 1, 0, 0, 0, 0 } }, identity() } }",
    "terms = { term { dense { { 1e160, 1, 0, 0, 0, 0 }, { 0, 1, 2, 1, 0, 0 } } } }",
    "terms = { term { dense { { 1e-160, 1e-160, 0, 0, 0, 0 } } } }",
    "terms = inhomogeneous { degree = 1, constant = 1e160 }",
};

#endif
