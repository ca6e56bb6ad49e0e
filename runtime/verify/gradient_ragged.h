/* gradient_ragged: gradients of sequences of different lengths in one batch, and states between calls. */
#ifndef FPAC_RUNTIME_VERIFY_GRADIENT_RAGGED_H
#define FPAC_RUNTIME_VERIFY_GRADIENT_RAGGED_H

#include "gradient_trial.h"

/* States of the tokens before the trial's cut, one a sequence. Of heads with a mask by the recurrent form: in float, also where the others
 * round products. */
fpa_status gradient_make_states(const fpa_gradient_trial *trial, const fpa_module *forward, fpa_field *states,
                                fpa_error *error);

/* The tokens of a trial of plain layout once more, each of its rows as two sequences of different lengths and one of no tokens
 * between them: the second one begins with the state of the first, which is in a pool, and its gradient goes back. outputs:
 * of all tokens, as `run`, which says what is wanted, would give them of the rows. */
fpa_status gradient_run_ragged(const fpa_gradient_trial *trial, const fpa_module *backward,
                               const fpa_module *forward, const fpa_gradient_run *run,
                               fpa_gradient_outputs *outputs, fpa_error *error);

#endif
