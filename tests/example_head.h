/* example_head: a head with one of everything that its canonical text can say. */
#ifndef FPAC_TESTS_EXAMPLE_HEAD_H
#define FPAC_TESTS_EXAMPLE_HEAD_H

#include "head/head.h"

/* Two terms over d = 4: 3 (x1 x2).(...) times a diagonal, and a trainable branch. head_free it. */
fpa_head *example_head(void);

#endif
