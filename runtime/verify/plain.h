/* verify_plain: how far plain evaluations of a trial are from the formula, for verification's second
 * criterion. */
#ifndef FPAC_RUNTIME_VERIFY_PLAIN_H
#define FPAC_RUNTIME_VERIFY_PLAIN_H

#include "runtime/reference/reference.h"

/* In narrow arithmetic tokens of the first chunk and later ones are told apart: what a state does
 * wrong shows in the later ones only, where errors are far smaller in relation to the magnitude
 * than at the first tokens. In float all are in the first part. */
typedef enum fpa_part { PART_FIRST, PART_LATER, PARTS } fpa_part;

/* Of errors over the magnitude. */
typedef struct fpa_errors {
    double squares[PARTS];
    int64_t count[PARTS];
} fpa_errors;

typedef struct fpa_plain {
    bool known;        /* both plain evaluations could be afforded */
    int columns;       /* first columns of o that they are compared on */
    fpa_errors floats; /* of the worse of the two, in float */
    fpa_errors pairs;  /* narrow arithmetic: of the evaluation score by score */
    fpa_errors narrow; /* of the worse of the two in that arithmetic */
} fpa_plain;

struct fpa_trial;

/* The squared error of one value, an output's column, where that is compared: of the value less what
 * storing it may have done, `stored`. */
void errors_add(const struct fpa_trial *trial, int64_t output, int column, double value, double stored,
                fpa_errors *errors);
double errors_rms(const fpa_errors *errors, fpa_part part); /* 0 of none */

/* Fill trial->plain. The problem is the trial's. */
fpa_status plain_measure(struct fpa_trial *trial, fpa_problem problem, fpa_error *error);

#endif
