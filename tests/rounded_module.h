/* rounded_module: a module written by hand that computes heads as tensor cores would: factors of
 * products in bf16 or f16, sums in float, a state that queries read rounded. */
#ifndef FPAC_TESTS_ROUNDED_MODULE_H
#define FPAC_TESTS_ROUNDED_MODULE_H

#include "runtime/kernel.h"

/* What the module does wrong. */
typedef enum rounded_fault {
    ROUNDED_RIGHT,
    ROUNDED_WEIGHT,  /* one feature of the state has half its weight */
    ROUNDED_MISSING, /* one feature is not in the state */
    ROUNDED_TILE,    /* eight neighbouring features of the state have half their weight */
    ROUNDED_MASK,    /* inside a chunk a token does not see its own key */
    ROUNDED_LEAK,    /* inside a chunk a token sees the next one's key */
    ROUNDED_EDGE,    /* the last key of a chunk is not in the state */
    ROUNDED_COARSE,  /* the copy of the state that queries read keeps 5 bits */
    ROUNDED_SCORE,   /* scores keep 5 bits */
    ROUNDED_HALVES, /* nothing: of four factors alike scores are (products of two rows of q) . (those of k), squared */
    ROUNDED_DECAY, /* the chunk's first key decays one step too much */
} rounded_fault;

/* A test has one module at a time: head, facts and fault of the one made last count. */
fpa_module rounded_module(const fpa_head *head, const fpa_facts *facts, rounded_fault kind);
/* Facts of the head in the arithmetic of its dtype, with these forms (bit 1 << form). */
fpa_facts rounded_facts(const fpa_head *head, int forms);
/* verify_module of both. */
fpa_status rounded_verify(const fpa_head *head, int forms, rounded_fault kind, fpa_verdict *verdict,
                          fpa_error *error);

#endif
