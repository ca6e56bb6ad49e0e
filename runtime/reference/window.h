/* reference_window: exponents of the keys in the window of a head, from q and k as given.
 *
 * All weights of a query are divided by e^m, where m is the larger of its largest exponent and 0, so that no
 * exponential overflows. */
#ifndef FPAC_RUNTIME_REFERENCE_WINDOW_H
#define FPAC_RUNTIME_REFERENCE_WINDOW_H

#include "reference.h"

/* One query token. */
typedef struct fpa_window_query {
    const fpa_problem *problem;
    int64_t b, t;
    int64_t head;    /* key/value head */
    const double *q; /* [width] as given */
} fpa_window_query;

/* Whether key j is in the window of token t. */
bool window_has(const fpa_head *head, int64_t t, int64_t j);

/* The exponent scale q.k_j; *size: the magnitude to which its rounding error is relative. */
double window_exponent(const fpa_window_query *query, int64_t j, double *size);
float window_exponent_plain(const fpa_window_query *query, int64_t j);

/* The number m; 0 without a window. Masked keys do not count. */
double window_largest(const fpa_window_query *query);
float window_largest_plain(const fpa_window_query *query);

#endif
