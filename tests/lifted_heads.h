/* lifted_heads: heads whose coordinates are made of q and k, one of each kind, and the text that others are written
 * in. Widths are those of reference_bench.h; options are any of the words "causal", "gate", "sum", "mask". */
#ifndef FPAC_TESTS_LIFTED_HEADS_H
#define FPAC_TESTS_LIFTED_HEADS_H

#include "head/head.h"

enum {
    WIDTH = 4, /* of q and k */
    SPACE = 2, /* numbers of a position */
    SKETCH = 5,
    SKETCH_DEGREE = 2,
};

/* sum of (elu(q) + 1)(elu(k) + 1) */
fpa_head *lifted_elu(const char *options);
/* sum of s(q) s(k) c cos(b + a (p_q - p_k)), s softplus; with_one: of e^q e^k (1 + cos(b + a (p_q - p_k))). a, b, c are
 * given at run time, one a head. */
fpa_head *lifted_fourier(bool with_one, const char *options);
/* (1 + q.k)^2 with a mask */
fpa_head *lifted_constant(const char *options);
/* The real parts and imaginary ones of a product of two Fourier transforms of count sketches. */
fpa_head *lifted_sketch(const char *options);
extern const int lifted_bucket[SKETCH_DEGREE][WIDTH], lifted_sign[SKETCH_DEGREE][WIDTH];
/* sum of g q (M q) (w q) times the same of k: g a diagonal, one a head, w dense and shared, both given at run time; M
 * constants of two heads. */
fpa_head *lifted_products(const char *options);

/* ---- texts ---- */

typedef struct lifted_text {
    char all[8192];
    size_t used;
} lifted_text;

__attribute__((format(printf, 2, 3))) void lifted_add(lifted_text *to, const char *format, ...);
/* The lines up to the matrices. */
void lifted_begin(lifted_text *to, int d, const char *options);
/* A part of one factor: its maps; inner, square, shift; gains; position line. */
void lifted_part(lifted_text *to, int rows, const char *maps, const char *inner, const char *gain,
                 const char *position, const char *factor);
extern const char lifted_as_is[], lifted_ones[]; /* inner, and gains */
/* One term: the sum over all d coordinates, to a power. */
fpa_head *lifted_finish(lifted_text *to, int d, int power);

#endif
