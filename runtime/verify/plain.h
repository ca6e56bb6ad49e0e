/* plain: errors of plain evaluations of a trial, for verification's second criterion. */
#ifndef FPAC_RUNTIME_VERIFY_PLAIN_H
#define FPAC_RUNTIME_VERIFY_PLAIN_H

#include "runtime/reference/reference.h"

/* In narrow arithmetic tokens of the first chunk and later ones are judged separately: faults of a state show only in later ones, where
 * errors are far smaller relative to the magnitude. In float all tokens are in the first part. */
typedef enum fpa_part { PART_FIRST, PART_LATER, PARTS } fpa_part;

/* Sums over errors relative to the magnitude. */
typedef struct fpa_errors {
    double squares[PARTS];
    int64_t count[PARTS];
} fpa_errors;

typedef struct fpa_plain {
    bool known;        /* both plain evaluations were affordable */
    int columns;       /* number of o's columns, from the first one on, that are compared */
    fpa_errors floats; /* the larger errors of the two, in float */
    fpa_errors pairs;  /* in narrow arithmetic: of the evaluation score by score */
    fpa_errors narrow; /* in narrow arithmetic: the larger errors of the two */
} fpa_plain;

struct fpa_trial;

/* Adds the squared error of one value if its output is compared; `stored`, the largest error of storing it, is subtracted before. */
void errors_add(const struct fpa_trial *trial, int64_t output, int column, double value, double stored,
                fpa_errors *errors);
double errors_rms(const fpa_errors *errors, fpa_part part); /* 0 without errors */

/* Fills trial->plain. problem: that of the trial. */
fpa_status plain_measure(struct fpa_trial *trial, fpa_problem problem, fpa_error *error);

#endif
