/* tokens: positions and key masks of a trial's tokens, for heads that read these. */
#ifndef FPAC_RUNTIME_VERIFY_TOKENS_H
#define FPAC_RUNTIME_VERIFY_TOKENS_H

#include "trial.h"

/* Draws positions and masks, for each sequence in another way: integers from 0, integers far from 0, or any real numbers; some keys
 * masked, or those of the first tokens, or whole chunks, or none. */
fpa_status tokens_draw(fpa_trial *trial, uint64_t seed, fpa_error *error);

/* Makes the tensors for modules, with strides, guards and values in gaps. Call after tokens_draw. */
fpa_status tokens_place(fpa_trial *trial, fpa_error *error);

/* Sets the drawn values; keys and values that are masked become NaN and infinities, since they must not be read. */
void tokens_restore(fpa_trial *trial);

/* Changes tokens from `from` on: positions become NaN, the mask is inverted, and keys and values that were masked get the trial's
 * values. */
void tokens_change_future(fpa_trial *trial, int64_t from);

/* The byte of a token in the mask that modules read. */
unsigned char *tokens_mask_at(const fpa_trial *trial, int64_t b, int64_t t);

#endif
