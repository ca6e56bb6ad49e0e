/* piece: a sequence in pieces, each in two halves: what its keys add up to, then its outputs. */
#ifndef FPAC_RUNTIME_VERIFY_PIECE_H
#define FPAC_RUNTIME_VERIFY_PIECE_H

#include "judge.h"

/* Two pieces, the second behind the first one's total. Nothing where the module keeps no copies of states between halves. */
fpa_status check_piece(const fpa_trial *trial, const fpa_module *module, fpa_measure *measure,
                       fpa_error *error);

#endif
