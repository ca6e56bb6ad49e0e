/* sequences: what a call says of its sequences beside their tensors: lengths of their own, states in pools. */
#ifndef FPAC_RUNTIME_API_SEQUENCES_H
#define FPAC_RUNTIME_API_SEQUENCES_H

#include "abi/launch.h"
#include "view.h"

typedef struct fpa_sequences {
    int64_t count;                /* of sequences */
    int64_t total;                /* tokens of all: of q, but with cu_seqlens and recent of k */
    fpa_view cu_seqlens, in, out; /* of those not given, tensor is NULL; out: as state_out's are found */
} fpa_sequences;

/* tokens: the view whose tokens are divided, with the batch and device of all others. INVALID names what is wrong; what the tensors say is
 * looked at where they lie on the CPU, if there is data. */
void sequences_check(fpa_checks *c, const fpa_tensors *tensors, const fpa_view *tokens,
                     fpa_sequences *sequences);

/* The same for the states, once there are views of those that are given. */
void sequences_check_states(fpa_checks *c, const fpa_sequences *sequences, const fpa_view *state_in,
                            const fpa_view *state_out);

/* What a launch says of them; it has batch and length of the tensors. */
void sequences_fill(const fpa_sequences *sequences, const fpa_tensors *tensors, const fpa_view *state_in,
                    const fpa_view *state_out, struct fpa_launch *launch);

#endif
