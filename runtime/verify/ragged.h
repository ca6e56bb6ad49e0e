/* ragged: sequences of different lengths in one call, with states in the slots of pools. */
#ifndef FPAC_RUNTIME_VERIFY_RAGGED_H
#define FPAC_RUNTIME_VERIFY_RAGGED_H

#include "judge.h"

/* A trial's sequences in three calls that cut each somewhere else, with none between them, and states that go from slot
 * to slot: outputs are those of the trial, and slots that are nobody's stay as they are. Then once more with sequences of
 * one length. */
fpa_status check_ragged(const fpa_trial *trial, const fpa_module *module, fpa_form_index form,
                        fpa_measure *measure, fpa_error *error);

#endif
