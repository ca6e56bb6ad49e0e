/* capacity: predicts how many key-value pairs a head's state can hold.
 *
 * The experiment is that of examples/recall.c: N pairs are stored, with keys x and codes c in random directions; each code
 * is queried by its key, and the answer is the code nearest to o. Let k be the head's kernel for one key x and another
 * one y: s = k(x, x) is the signal, m = E k(x, y), t = E k(x, y)^2. Then
 *
 *     o along the right code       is s + a z, z normal, a^2 = N t / dv   (the other codes in o)
 *     o orthogonal to it           has the square N t (1 - 1 / dv) in all
 *     each of N - 1 other codes    is m lower, with the variance  b^2 = t - m^2 + |o|^2 / dv
 *
 * so that the share of N that is recalled is the integral over z of F((s - m + a z) / b)^(N - 1). F is the distribution of
 * the product of a random unit code with a direction, times sqrt(dv), which is nearly normal (Wallace's approximation of
 * Student's t). s^2 / t is the number of independent features that D features are worth: d for q.k, d (d + 2) / 3 for
 * (q.k)^2. If s differs from key to key, as with projections, the share is the mean over groups of keys. Gates and
 * rounding are not taken into account. */
#ifndef FPAC_COMMAND_CAPACITY_H
#define FPAC_COMMAND_CAPACITY_H

#include "gen/simplify/simplify.h"

enum { KEY_GROUPS = 16 };
typedef struct kernel_moments {
    int groups; /* groups of keys in order of s, equally many in each */
    struct {
        double own, mean, square; /* s, m, t */
    } group[KEY_GROUPS];
    bool is_negative; /* k is negative for some keys */
} kernel_moments;

/* Measure the moments of a kernel. Keys are random directions of length sqrt(d), as after a norm before attention:
 * k(scale q, k) of a head with scale = 1 / sqrt(d) has arguments of size 1, as softmax has. For a polynomial of
 * q.k by formula; for others from the pairs of 256 keys of a fixed seed, where rows given at run time are
 * orthonormal. Not for heads with a lift, which rows of `fpac design` never have: `simple` is only the polynomial
 * of their coordinates. NO_MEMORY; UNSUPPORTED: k(x, x) is 0 on average, so that nothing is recalled. */
fpa_status kernel_measure(const fpa_simplified *simple, double scale, kernel_moments *moments,
                          fpa_error *error);

/* The share of `pairs` pairs that is recalled. */
double capacity_share(const kernel_moments *moments, int dv, double pairs);

/* s^2 / t over all keys: the number of equal, independent features that the kernel is worth. */
double capacity_features(const kernel_moments *moments);

/* The most pairs, at least 1, of which at least that share is recalled. */
double capacity_pairs(const kernel_moments *moments, int dv, double share);

#endif
