/* verdict: from the results of trials: figures for each form, and one line of text. */
#ifndef FPAC_RUNTIME_VERIFY_VERDICT_H
#define FPAC_RUNTIME_VERIFY_VERDICT_H

#include "judge.h"
#include "verify.h"

/* REFUSED: nothing could be compared, or errors are too large on average. */
fpa_status verdict_conclude(const fpa_head *head, fpa_form_index form, const fpa_measure *m,
                            fpa_form_verdict *verdict, fpa_error *error);

/* "parallel: 9 shapes to 391 tokens, 12345 of 12345 values, worst 0.05 of 1.2e-05, ..." */
void verdict_write(const fpa_measure measures[FORMS], fpa_verdict *verdict);

#endif
