/* explain_head: a head as it was written, for `fpac explain`. */
#ifndef FPAC_COMMAND_EXPLAIN_HEAD_H
#define FPAC_COMMAND_EXPLAIN_HEAD_H

#include "head/head.h"

/* Print on stdout: name and origin, shape, terms (consecutive ones of equal shape on one line), run-time matrices,
 * coordinates, notes. */
void explain_head_print(const fpa_head *head);

#endif
