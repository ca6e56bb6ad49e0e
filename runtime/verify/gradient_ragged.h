/* gradient_ragged: gradients of a packed batch, and states between calls. */
#ifndef FPAC_RUNTIME_VERIFY_GRADIENT_RAGGED_H
#define FPAC_RUNTIME_VERIFY_GRADIENT_RAGGED_H

#include "gradient_judge.h"

/* Makes a field of `count` states, or of their gradients; to be freed also after an error. */
void gradient_make_states(fpa_gradient_check *c, int64_t count, fpa_field *states);

/* Computes the states of the tokens before the trial's cut, one for each sequence. For causal heads by the recurrent form, whose
 * arithmetic is float even if other forms round products. */
void gradient_run_states(fpa_gradient_check *c, fpa_field *states);

/* Runs the tokens of a trial of plain layout as a packed batch: each row as two sequences of different lengths, with one without tokens
 * between them. The second begins with the first one's state, which is in a pool, and gives back its gradient. outputs: for all tokens,
 * as `run` would compute them for whole rows. */
void gradient_run_ragged(fpa_gradient_check *c, const fpa_gradient_run *run, fpa_gradient_outputs *outputs);

#endif
