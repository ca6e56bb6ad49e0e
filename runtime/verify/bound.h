/* bound: how far an output may be from the formula's value, from the head's operations. */
#ifndef FPAC_RUNTIME_VERIFY_BOUND_H
#define FPAC_RUNTIME_VERIFY_BOUND_H

#include "abi/source.h"

/* |o - reference| <= tau magnitude + rounding |reference| + smallest. */
typedef struct fpa_bound {
    double tau;
    double rounding; /* of storing o; 0 if tau includes it */
    double smallest; /* absolute error below the range of the types */
} fpa_bound;

/* The bound for a run in one form that took over a state `resumes` times. If another form made the last one, the larger tau counts. */
fpa_bound bound_of(const fpa_head *head, const fpa_facts *facts, fpa_form_index form, int64_t length,
                   int resumes);
double bound_allows(const fpa_bound *bound, double magnitude, double reference);

/* The largest relative error of a normaliser for which the first-order bound holds; outputs with a larger one are not judged. */
double bound_condition(const fpa_facts *facts);

#endif
