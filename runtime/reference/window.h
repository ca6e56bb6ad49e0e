/* reference_window: exponents of the newest keys of a head with a window, of q and k as they are given.
 *
 * All weights of a query are divided by e^m, m the largest of its exponents and of 0: no exponential overflows. */
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

/* Whether key j of a head with a window is in that of token t. */
bool window_has(const fpa_head *head, int64_t t, int64_t j);

/* scale q.k_j, and what its rounding error is relative to. */
double window_exponent(const fpa_window_query *query, int64_t j, double *size);
float window_exponent_plain(const fpa_window_query *query, int64_t j);

/* m; 0 without a window. Masked keys do not count. */
double window_largest(const fpa_window_query *query);
float window_largest_plain(const fpa_window_query *query);

#endif
