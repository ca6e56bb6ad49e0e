/* inputs: seeded inputs of a trial, rounded to the types that the module reads. */
#ifndef FPAC_RUNTIME_VERIFY_INPUTS_H
#define FPAC_RUNTIME_VERIFY_INPUTS_H

#include "trial.h"

/* Fills q, k, v, gate, weights and launch_weights. */
fpa_status inputs_draw(fpa_trial *trial, uint64_t seed, fpa_error *error);
void inputs_free(fpa_trial *trial);

#endif
