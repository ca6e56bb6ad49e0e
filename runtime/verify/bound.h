/* verify_bound: how far an output may be from the formula, from the head's own operations. */
#ifndef FPAC_RUNTIME_VERIFY_BOUND_H
#define FPAC_RUNTIME_VERIFY_BOUND_H

#include "abi/source.h"

/* |o - reference| <= tau magnitude + rounding |reference| + smallest. */
typedef struct fpa_bound {
    double tau;
    double rounding; /* of storing o; 0 where tau has it */
    double smallest; /* errors that are none: below the range of the types */
} fpa_bound;

/* Of one run in one form that took over a state so many times (the last time from a form that
 * may be another: the larger tau counts). */
fpa_bound bound_of(const fpa_head *head, const fpa_facts *facts, fpa_form_index form, int64_t length,
                   int resumes);
double bound_allows(const fpa_bound *bound, double magnitude, double reference);

/* The largest error of a normaliser, relative to it, of which the bound to first order is one: what is
 * above is not judged. */
double bound_condition(const fpa_facts *facts);

#endif
