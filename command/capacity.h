/* capacity: how many key-value pairs a head's state can hold, predicted.
 *
 * The experiment is that of examples/recall.c: N pairs are stored, keys x and codes c in random directions; each
 * code is asked for by its key, and the answer is the code that is nearest to o. With k the head's kernel, of one key
 * x and of another one y: s = k(x, x) the signal, m = E k(x, y), t = E k(x, y)^2:
 *
 *     o along the right code   s + a z, z normal, a^2 = N t / dv   (the others' codes in o)
 *     o across it              N t (1 - 1 / dv) in all, as a square
 *     each of N - 1 others     m less, with the variance  b^2 = t - m^2 + |o|^2 / dv
 *
 * so that the share of N that comes back is the integral over z of F((s - m + a z) / b)^(N - 1). F is the distribution
 * of a random unit code's product with a direction, times sqrt(dv), nearly normal (Wallace's approximation of Student's t).
 * s^2 / t is what a state's D features are worth: d of q.k, d (d + 2) / 3 of (q.k)^2. Where s differs from key to
 * key, as behind projections, the share is the mean over groups of keys. What forgets by a gate, and what rounding
 * takes, is not counted. */
#ifndef FPAC_COMMAND_CAPACITY_H
#define FPAC_COMMAND_CAPACITY_H

#include "gen/simplify/simplify.h"

enum { KEY_GROUPS = 16 };
typedef struct kernel_moments {
    int groups; /* of keys, of growing s, as many in each */
    struct {
        double own, mean, square; /* s, m, t */
    } group[KEY_GROUPS];
    bool is_negative; /* there are keys whose k is below 0 */
} kernel_moments;

/* Keys are random directions of length sqrt(d), as a norm in front of attention makes them: k(scale q, k) of a
 * head with scale = 1 / sqrt(d) has arguments of size 1, as softmax's. Of a power of q.k, or a polynomial in it, by
 * formula; of others from pairs of 256 keys of a fixed seed, rows that are given at run time taken orthonormal.
 * Not for heads with a lift, as rows of `fpac design` never have: simple knows only the polynomial of their coordinates.
 * NO_MEMORY; UNSUPPORTED: k(x, x) is 0 on average, and nothing comes back. */
fpa_status kernel_measure(const fpa_simplified *simple, double scale, kernel_moments *moments,
                          fpa_error *error);

/* The share of pairs that come back of so many. */
double capacity_share(const kernel_moments *moments, int dv, double pairs);

/* s^2 / t over all keys: of how many equal, independent features the kernel is worth. */
double capacity_features(const kernel_moments *moments);

/* The most pairs of which at least that share comes back; 1 at least. */
double capacity_pairs(const kernel_moments *moments, int dv, double share);

#endif
