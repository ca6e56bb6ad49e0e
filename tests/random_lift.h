/* random_lift: a seeded random lift for random_head: parts of all kinds, of few rows. */
#ifndef FPAC_TESTS_RANDOM_LIFT_H
#define FPAC_TESTS_RANDOM_LIFT_H

#include "random_head.h"

/* Makes the head's lift over its d, which becomes the number of coordinates, and its matrices. False: no memory. */
bool random_lift(random_source *random, fpa_head *head);

#endif
