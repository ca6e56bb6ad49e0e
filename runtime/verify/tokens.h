/* tokens: what a trial's tokens have beside their vectors: positions, and a mask of keys. Heads that take none of
 * them have none of them. */
#ifndef FPAC_RUNTIME_VERIFY_TOKENS_H
#define FPAC_RUNTIME_VERIFY_TOKENS_H

#include "trial.h"

/* Positions and the mask by a seed, each sequence's its own: integers from 0, integers far from it, or any real
 * numbers; some keys masked, those of the first tokens, runs of whole chunks, or none. */
fpa_status tokens_draw(fpa_trial *trial, uint64_t seed, fpa_error *error);

/* How a module gets them: with strides, guards and values in between. After tokens_draw. */
fpa_status tokens_place(fpa_trial *trial, fpa_error *error);

/* Their values, and no numbers for keys and values that are masked: these are not looked at. */
void tokens_restore(fpa_trial *trial);

/* Others from token `from` on: positions that are further away or no numbers, and a mask that is the opposite. Keys
 * and values that were masked are those of the trial again. */
void tokens_change_future(fpa_trial *trial, int64_t from);

/* The byte of a token in the mask that modules get. */
unsigned char *tokens_mask_at(const fpa_trial *trial, int64_t b, int64_t t);

#endif
