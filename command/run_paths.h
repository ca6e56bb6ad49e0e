/* run_paths: the options of `fpac run`, the check that outputs do not overwrite inputs, and the names of its
 * files. */
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
    INPUT_COUNT,     /* draft: how many of its tokens are accepted */
    INPUTS
};

typedef struct run_options {
    const char *head, *form, *target, *dtype;
    const char *input[INPUTS]; /* paths; NULL: not given */
    const char *output, *state_output;
    fpa_texts weights; /* NAME=path */
    int64_t device;
    bool check_finite; /* whether inputs and outputs are checked */
} run_options;

extern const char *const run_input_names[INPUTS];

/* INVALID: an output is the spec, an input, or the other output. */
fpa_status run_check_paths(const char *spec, const run_options *options, fpa_error *error);

/* Replace the tensor's name in an error of the library by the user's file: "q" becomes "mine.q.npy (q)". */
void run_name_file(const run_options *options, fpa_error *error);

#endif
