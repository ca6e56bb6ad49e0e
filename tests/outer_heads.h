/* Heads that tiles of 64 features suit, and heads that they do not. */
#ifndef FPAC_TESTS_OUTER_HEADS_H
#define FPAC_TESTS_OUTER_HEADS_H

#include <stdbool.h>
#include <stdint.h>

/* And what becomes of them when a warpgroup holds 6 tiles. */
static const struct suited {
    const char *body; /* of head { ... } */
    int64_t features;
    bool coordinates;
    int tiles, suffixes, strips, folded;
} suited[] = {
    {"d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 1 }", 2080, true, 36, 3, 12, 8},
    {"d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 4 }", 2112, true, 36, 3, 12, 8},
    {"d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 8 }", 2112, true, 36, 3, 12, 8},
    {"d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 16 }", 2112, true, 36, 3, 12, 8},
    {"d = 128, dv = 128, terms = power { degree = 2 }, block = 8", 8320, true, 136, 3, 46, 16},
    {"d = 256, dv = 64, terms = power { degree = 2 }, block = 8", 33024, true, 528, 3, 176, 32},
    {"d = 40, dv = 64, terms = power { degree = 2 }, block = 8", 840, true, 15, 3, 5, 5},
    {"d = 60, dv = 64, terms = tspow { d = 60, degree = 2, block = 8 }", 1860, true, 36, 3, 12, 8},
    {"d = 32, dv = 64, terms = power { degree = 3 }, block = 8", 10240, true, 160, 2, 88, 0},
    {"d = 32, dv = 32, terms = tspow { d = 32, degree = 3, block = 4 }", 7680, true, 140, 2, 80, 0},
    {"d = 48, dv = 48, scale = 1 / sqrt(48), block = 8, normalize = 'max', "
     "terms = inhomogeneous { degree = 2, constant = ratio(1, 2) }",
     1249, true, 28, 3, 10, 7},
    {"d = 32, dv = 32, block = 4, terms = inhomogeneous { degree = 3, constant = 2 }", 8257, true, 155, 3, 79,
     0},
    {"d = 64, dv = 64, block = 8, scale = 1 / 8, terms = taylor { degree = 2 }, normalize = 'sum'", 2177,
     true, 45, 3, 15, 9},
    {"d = 64, dv = 64, gate = true, terms = tspow { d = 64, degree = 2, block = 8 }", 2112, true, 36, 3, 12,
     8},
    {"d = 64, dv = 64, terms = term { dense(orthogonal { d = 64, rows = 16, seed = 14 }), "
     "dense(orthogonal { d = 64, rows = 32, seed = 15 }) }",
     512, false, 8, 4, 2, 0},
    {"d = 48, dv = 48, terms = term { trainable { name = 'W1', rows = 8 }, trainable { name = 'W2', rows = "
     "12 } }",
     96, false, 2, 2, 1, 0},
    {"d = 24, dv = 24, terms = term { trainable { name = 'g', diagonal = true }, select(range(1, 8)) }", 192,
     false, 3, 1, 3, 0},
    {"d = 16, dv = 16, terms = { term { select(range(1, 8)), diagonal { [range(9, 16)] = sqrt2 } }, "
     "term { trainable { name = 'W', rows = 16 }, select(range(9, 16)), weight = 3 } }",
     192, false, 3, 1, 3, 0},
    /* tiles that are there with their transposes stay */
    {"d = 16, dv = 16, terms = tspow { d = 16, degree = 3, block = 16 }", 4096, true, 64, 2, 32, 0},
    /* no feature is constant, but shorter ones need the row of ones */
    {"d = 64, dv = 64, block = 8, terms = { term { identity(), identity() }, term { identity() } }", 2176,
     true, 44, 3, 15, 8},
    /* weighted rows beside others, and in runs that dots part */
    {"d = 32, dv = 16, terms = term { trainable { name = 'W', rows = 16 }, "
     "diagonal { [range(1, 8)] = 1, [range(9, 20)] = sqrt2, [range(21, 24)] = 3 } }",
     384, false, 6, 2, 3, 0},
    {"d = 32, dv = 16, terms = { term { trainable { name = 'W', rows = 8 }, "
     "diagonal { [range(1, 6)] = sqrt2, [range(7, 12)] = 3 } }, "
     "term { trainable { name = 'V', rows = 8 }, diagonal { [range(13, 18)] = sqrt2, [range(19, 24)] = 3 } } "
     "}",
     192, false, 4, 1, 4, 0},
    /* the last block's 4 prefixes and the row of ones make up one group */
    {"d = 60, dv = 64, block = 8, terms = inhomogeneous { degree = 2, constant = 1 }", 1921, true, 44, 3, 15,
     7},
    /* tiles that are half empty, and rows as they lie */
    {"d = 16, dv = 16, terms = taylor { degree = 2 }", 161, true, 6, 2, 3, 3},
    {"d = 64, dv = 64, terms = linear {}", 64, true, 1, 1, 1, 0},
    {"d = 72, dv = 64, terms = { term { dense(orthogonal { rows = 60, d = 72, seed = 1 }) }, term { "
     "identity() } }",
     132, false, 3, 3, 1, 0},
    /* a dot of 12 coordinates of 16, which it gathers */
    {"d = 16, dv = 16, terms = term { select(range(1, 12)), trainable { name = 'W', rows = 8 } }", 96, false,
     2, 1, 2, 0},
    /* two dots of few coordinates of many, which share some */
    {"d = 200, dv = 16, terms = { term { select(range(3, 18)), select(range(50, 60)) }, "
     "term { select(range(11, 26)), select(range(100, 107)) } }",
     304, false, 6, 3, 3, 0},
    /* coordinates behind rows that are packed */
    {"d = 136, dv = 40, terms = term { dense(orthogonal { rows = 3, d = 136, seed = 1 }), select(range(4, "
     "131)) }",
     384, false, 16, 3, 6, 0},
    {"d = 25, dv = 96, terms = power { degree = 3 }", 3249, true, 105, 3, 46,
     0}, /* of which a block has one row */
};

/* Which coordinates kernels read as they are given, behind packed rows: whole pieces of 16 bytes, in no more slabs of 64 rows than all would need, and not many more
 * lines of 128 bytes. */
static const struct {
    const char *body;
    int first, rows, slab;
} of_given_rows[] = {
    {"d = 256, dv = 64, terms = { term { dense(orthogonal { rows = 2, d = 256, seed = 1 }), trainable { name "
     "= 'a', rows = 44 } }, "
     "term { select(range(26, 31)), select(range(42, 233)) } }",
     48, 184, 2},
    {"d = 128, dv = 64, terms = term { dense(orthogonal { rows = 16, d = 128, seed = 1 }), identity() }", 0,
     128, 1},
    {"d = 130, dv = 64, terms = term { dense(orthogonal { rows = 16, d = 130, seed = 1 }), identity() }", 0,
     0, 0},
    {"d = 88, dv = 64, terms = term { dense(orthogonal { rows = 16, d = 88, seed = 1 }), select(range(4, "
     "83)) }",
     0, 0, 0},
    {"d = 136, dv = 64, terms = term { dense(orthogonal { rows = 16, d = 136, seed = 1 }), select(range(60, "
     "131)) }",
     64, 64, 1},
    {"d = 136, dv = 64, terms = term { dense(orthogonal { rows = 16, d = 136, seed = 1 }), select(range(44, "
     "115)) }",
     0, 0, 0},
    {"d = 64, dv = 64, terms = power { degree = 2 }", 0, 0, 0},
};

/* The others, and why. */
static const struct unsuited {
    const char *body, *why;
} unsuited[] = {
    {"d = 64, dv = 16, terms = { term { select { 1 }, select { 9 } }, term { select { 2 }, select { 20 } }, "
     "term { select { 3 }, select { 30 } }, term { select { 4 }, select { 40 } } }",
     "fill only 2 % of tiles"},
};

/* The row of ones times all blocks, and the last rows where d is no multiple of 8. Tiles of one suffix block, of up to two, of up to four, and with groups
 * that are cut: of six prefixes, and of suffixes that have four rows. */
static const struct {
    const char *body;
    int tiles[4];
} of_few_prefixes[] = {
    {"d = 48, dv = 128, terms = inhomogeneous { degree = 2, constant = 1 }", {28, 25, 23, 23}},
    {"d = 43, dv = 64, terms = power { degree = 2 }", {21, 18, 18, 18}},
    {"d = 65, dv = 64, terms = inhomogeneous { degree = 2, constant = 1 }", {54, 46, 42, 42}},
    {"d = 64, dv = 64, terms = power { degree = 2 }", {36, 36, 36, 36}},
    {"d = 70, dv = 64, terms = term { select(range(1, 6)), dense(orthogonal { rows = 58, d = 70, seed = 1 }) "
     "}",
     {8, 8, 8, 6}},
    {"d = 64, dv = 64, terms = term { select(range(1, 24)), select(range(29, 64)) }", {15, 15, 15, 14}}};

#endif
