/* What fpac run is asked for, and whether what it writes would replace what it reads; what its files are called. */
#ifndef FPAC_COMMAND_RUN_PATHS_H
#define FPAC_COMMAND_RUN_PATHS_H

#include "base/error.h"
#include "options.h"

enum {
    INPUT_Q,
    INPUT_K,
    INPUT_V,
    INPUT_GATE,
    INPUT_STATE,
    INPUT_POSITIONS,
    INPUT_MASK,
    INPUT_SEQUENCES, /* cu_seqlens */
    INPUT_INDEX,     /* state_index */
    INPUT_COUNT,     /* of a draft: how many of its tokens are accepted */
    INPUTS
};

typedef struct run_options {
    const char *head, *form, *target, *dtype;
    const char *input[INPUTS]; /* paths; NULL: not given */
    const char *output, *state_output;
    fpa_texts weights; /* NAME=path */
    int64_t device;
    bool check_finite; /* of inputs and outputs */
} run_options;

extern const char *const run_input_names[INPUTS];

/* INVALID when an output is the spec, an input, or the other output. */
fpa_status run_check_paths(const char *spec, const run_options *options, fpa_error *error);

/* The library's messages name tensors, but the user gave files: "q" becomes "mine.q.npy (q)". */
void run_name_file(const run_options *options, fpa_error *error);

#endif
