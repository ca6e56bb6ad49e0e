/* ragged: packed batches, with states in the slots of pools. */
#ifndef FPAC_RUNTIME_VERIFY_RAGGED_H
#define FPAC_RUNTIME_VERIFY_RAGGED_H

#include "judge.h"

/* Runs a trial's sequences in three calls that cut each at another token, with sequences without tokens between them, and with states
 * that move from slot to slot: outputs must be those of the trial, and unused slots must not change. Values of a sequence's later tokens,
 * including NaN and infinities, must not change its earlier outputs, nor those of other sequences. Then runs sequences of equal lengths.
 * Restores the inputs. */
void check_ragged(fpa_check *c);

#endif
