/* Simplifying with a check, for the tests of simplify. */
#ifndef FPAC_TESTS_SIMPLIFY_CHECKED_H
#define FPAC_TESTS_SIMPLIFY_CHECKED_H

#include "heads.h"

static uint64_t random_state = 20240613;

static inline uint64_t random_bits(void)
{
    return random_state = hash_word(random_state, 1);
}

static inline int random_below(int n)
{
    return (int)(random_bits() % (uint64_t)n);
}

static inline double random_unit(void)
{
    return 2 * ((double)(random_bits() >> 11) * 0x1p-53) - 1;
}

/* Simplify, and compare head, features and score at random q and k. */
static inline fpa_simplified simplify_checked(const fpa_head *head)
{
    fpa_simplified simple;
    fpa_error error;
    if (head_validate(head, &error) != FPA_OK || simplify(head, &simple, &error) != FPA_OK)
        fail_msg("%s: %s", error.where, error.message);
    for (int trial = 0; trial < 3; trial++) {
        double q[1024], k[1024];
        for (int i = 0; i < head->d; i++) {
            q[i] = random_unit();
            k[i] = random_unit();
        }
        sum_value written = kernel_value(head, q, k), features = kernel_value(simple.head, q, k);
        assert_true(fabs(written.value - features.value) <= 1e-12 * written.magnitude);
        assert_true(fabs(written.value - score_value(&simple, q, k)) <= 1e-12 * written.magnitude);
    }
    return simple;
}

/* Simplify and give D alone. */
static inline double simplified_features(fpa_head *head)
{
    fpa_simplified simple = simplify_checked(head);
    double features = head_features(simple.head);
    simplified_free(&simple);
    head_free(head);
    return features;
}

static inline char *simplified_text(fpa_head *head)
{
    fpa_simplified simple = simplify_checked(head);
    char *text = head_print(simple.head);
    assert_non_null(text);
    assert_int_equal(simple.score.dot_count, 1);
    assert_int_equal(simple.score.dots[0].width, head->d);
    simplified_free(&simple);
    head_free(head);
    return text;
}

static inline bool has_text(char **lines, int count, const char *part)
{
    for (int i = 0; i < count; i++)
        if (strstr(lines[i], part))
            return true;
    return false;
}

static inline void random_rows(double *w, int rows, int d)
{
    for (int i = 0; i < rows * d; i++)
        w[i] = random_unit();
}

/* product = a (rows x inner) b (inner x d) */
static inline void multiply(const double *a, const double *b, int rows, int inner, int d, double *product)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < d; c++) {
            product[r * d + c] = 0;
            for (int i = 0; i < inner; i++)
                product[r * d + c] += a[r * inner + i] * b[i * d + c];
        }
}

#endif
