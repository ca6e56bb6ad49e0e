/* explain_head: a head as it was written, for `fpac explain`. */
#ifndef FPAC_COMMAND_EXPLAIN_HEAD_H
#define FPAC_COMMAND_EXPLAIN_HEAD_H

#include "head/head.h"

/* On stdout: its name and origin, its shape, terms (runs of equal ones on a line), run-time matrices, coordinates, notes. */
void explain_head_print(const fpa_head *head);

#endif
