/* parity_cases: the cases of tests/parity, and the arrays that each one's run-time matrices come from. */
#ifndef FPAC_TESTS_PARITY_CASES_H
#define FPAC_TESTS_PARITY_CASES_H

#include <stdbool.h>

/* A run-time matrix: its name in the spec, and the array (a slice of it, with roots) it comes from. */
typedef struct weight_source {
    const char *name, *array;
    int slice; /* of axis 1; -1: the whole array as it is */
} weight_source;

typedef struct parity_case {
    const char *name;
    bool more; /* of make test-all: another case has the same peer, and each thing that its head has */
    weight_source weights[8];
} parity_case;

#define DIAGONAL_2                                                                                           \
    {                                                                                                        \
        {"g1", "g_diag", 0},                                                                                 \
        {                                                                                                    \
            "g2", "g_diag", 1                                                                                \
        }                                                                                                    \
    }
#define DIAGONAL_4                                                                                           \
    {                                                                                                        \
        {"g1", "g_diag", 0}, {"g2", "g_diag", 1}, {"g3", "g_diag", 2},                                       \
        {                                                                                                    \
            "g4", "g_diag", 3                                                                                \
        }                                                                                                    \
    }
#define DENSE_2                                                                                              \
    {                                                                                                        \
        {"w0_0", "w0_0", -1},                                                                                \
        {                                                                                                    \
            "w0_1", "w0_1", -1                                                                               \
        }                                                                                                    \
    }
#define DENSE_TERMS                                                                                          \
    {                                                                                                        \
        {"w0_0", "w0_0", -1}, {"w1_0", "w1_0", -1}, {"w1_1", "w1_1", -1}, {"w2_0", "w2_0", -1},              \
            {"w2_1", "w2_1", -1}, {"w2_2", "w2_2", -1},                                                      \
    }

static const parity_case cases[] = {
    {.name = "linear_unnorm", .more = true},
    {.name = "linear_unnorm_d64", .more = true},
    {.name = "linear_state"},
    {.name = "simple_gla"},
    {.name = "gla_state"},
    {.name = "power2_norm", .more = true},
    {.name = "power2_norm_d64", .more = true},
    {.name = "power2_norm_gated", .more = true},
    {.name = "power2_norm_gqa"},
    {.name = "power2_rebased_norm"},
    {.name = "power2_split", .more = true},
    {.name = "power2_split_gated"},
    {.name = "power2_unnorm"},
    {.name = "power2_unnorm_gated", .more = true},
    {.name = "power4_norm", .more = true},
    {.name = "power4_norm_gated"},
    {.name = "power4_shared_w_norm1", .weights = {{"w", "w", -1}}},
    {.name = "poly2_coef0_noncausal"},
    {.name = "poly3_unnorm"},
    {.name = "polysketch_causal"},
    {.name = "polysketch_noncausal", .more = true},
    {.name = "fpa_dense_terms", .weights = DENSE_TERMS},
    {.name = "fpa_dense_paired_norm", .weights = DENSE_2},
    {.name = "fpa_diag_n2_norm", .more = true, .weights = DIAGONAL_2},
    {.name = "fpa_diag_n2_norm_gated", .weights = DIAGONAL_2},
    {.name = "fpa_diag_n2_unnorm", .more = true, .weights = DIAGONAL_2},
    {.name = "fpa_diag_n4_norm", .weights = DIAGONAL_4},
    {.name = "fpa_diag_n4_unnorm", .more = true, .weights = DIAGONAL_4},
    {.name = "based_norm"},
    {.name = "based_unnorm", .more = true},
    {.name = "taylor_full_noncausal", .more = true},
    {.name = "taylor_packed_noncausal"},
    {.name = "linear_elu_causal"},
    {.name = "linear_elu_noncausal", .more = true},
    {.name = "fourier_head_causal", .weights = {{"a", "a", -1}, {"b", "b", -1}}},
    {.name = "fourier_head_keymask", .weights = {{"a", "a", -1}, {"b", "b", -1}}},
    {.name = "fourier_head_noncausal_2d", .weights = {{"a", "a", -1}, {"b", "b", -1}}},
    {.name = "fourier_seed_causal",
     .more = true,
     .weights = {{"a", "a", -1}, {"b", "b", -1}, {"c", "c", -1}}},
    {.name = "fourier_seed_causal_unnorm_2d", .weights = {{"a", "a", -1}, {"b", "b", -1}, {"c", "c", -1}}},
    {.name = "fourier_seed_noncausal", .weights = {{"a", "a", -1}, {"b", "b", -1}, {"c", "c", -1}}},
    {.name = "fourier_seed_noncausal_2d_grid",
     .more = true,
     .weights = {{"a", "a", -1}, {"b", "b", -1}, {"c", "c", -1}}},
    {.name = "tensorsketch_p1_even", .more = true},
    {.name = "tensorsketch_p2_even", .more = true},
    {.name = "tensorsketch_p2_odd_coef0"},
    {.name = "tensorsketch_p3_even_coef0"},
    {.name = "tensorsketch_p3_odd", .more = true},
};

enum { CASES = sizeof cases / sizeof *cases };

#endif
