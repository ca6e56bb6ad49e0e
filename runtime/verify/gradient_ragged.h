/* gradient_ragged: gradients of sequences of different lengths in one batch, and states between calls. */
#ifndef FPAC_RUNTIME_VERIFY_GRADIENT_RAGGED_H
#define FPAC_RUNTIME_VERIFY_GRADIENT_RAGGED_H

#include "gradient_judge.h"

/* Room for so many states, or gradients of them; freed also after an error. */
void gradient_make_states(fpa_gradient_check *c, int64_t count, fpa_field *states);

/* States of the tokens before the trial's cut, one a sequence. Of heads with a mask by the recurrent form: in float, also where the others
 * round products. */
void gradient_run_states(fpa_gradient_check *c, fpa_field *states);

/* The tokens of a trial of plain layout once more, each of its rows as two sequences of different lengths and one of no tokens
 * between them: the second one begins with the state of the first, which is in a pool, and its gradient goes back. outputs:
 * of all tokens, as `run`, which says what is wanted, would give them of the rows. */
void gradient_run_ragged(fpa_gradient_check *c, const fpa_gradient_run *run, fpa_gradient_outputs *outputs);

#endif
