/* ragged: sequences of different lengths in one call, with states in the slots of pools. */
#ifndef FPAC_RUNTIME_VERIFY_RAGGED_H
#define FPAC_RUNTIME_VERIFY_RAGGED_H

#include "judge.h"

/* A trial's sequences in three calls that cut each somewhere else, with none between them, and states that go from slot
 * to slot: outputs are those of the trial, and slots that are nobody's stay as they are. Values of a sequence's later tokens, NaN
 * and infinities among them, are in no earlier output and in no other sequence's. Then once more with sequences of one length;
 * inputs are as before afterwards. */
void check_ragged(fpa_check *c);

#endif
