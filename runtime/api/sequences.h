/* sequences: the description of a call's sequences: their lengths (cu_seqlens) and the slots of their states. */
#ifndef FPAC_RUNTIME_API_SEQUENCES_H
#define FPAC_RUNTIME_API_SEQUENCES_H

#include "abi/launch.h"
#include "view.h"

typedef struct fpa_sequences {
    int64_t count;                /* number of sequences */
    int64_t total;                /* tokens of all sequences: of q, or with cu_seqlens and recent of k */
    fpa_view cu_seqlens, in, out; /* tensor NULL: not given. in, out: indices of state_in and state_out */
} fpa_sequences;

/* Check cu_seqlens and state indices. tokens: the view whose token axis cu_seqlens divides; the other tensors have
 * its batch and device. INVALID names the error; contents are checked if they are on the CPU and data are given. */
void sequences_check(fpa_checks *c, const fpa_tensors *tensors, const fpa_view *tokens,
                     fpa_sequences *sequences);

/* Check the indices against the states, once there are views of these. */
void sequences_check_states(fpa_checks *c, const fpa_sequences *sequences, const fpa_view *state_in,
                            const fpa_view *state_out);

/* Set the fields of a launch for its sequences; batch and length of the launch are those of the tensors. */
void sequences_fill(const fpa_sequences *sequences, const fpa_tensors *tensors, const fpa_view *state_in,
                    const fpa_view *state_out, struct fpa_launch *launch);

#endif
