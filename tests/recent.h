/* recent: a decode loop that keeps the newest keys and values beside the state, on the CPU or a GPU. */
#ifndef FPAC_TESTS_RECENT_H
#define FPAC_TESTS_RECENT_H

#include "gpu_problem.h"

enum { RECENT_MOST_HEADS = 8 };

/* Heads opened on the CPU and, where there is one, on a GPU. */
typedef struct recent_fixture {
    const char *file, *specs; /* their name in messages, and their text */
    const char *names[RECENT_MOST_HEADS];
    int count;
    test_gpu gpu;
    bool ready; /* there is a GPU */
    fpa_kernel *c[RECENT_MOST_HEADS], *cuda[RECENT_MOST_HEADS];
} recent_fixture;

/* 0, or -1 and why as a message. file, specs, names and count are set before. */
int recent_open(recent_fixture *f);
int recent_close(void **state); /* a group's teardown */

/* The outputs of a problem, token by token: each with a state that has not seen up to `most` - 1 tokens
 * before it; after `most` of them, in form `folding`, they go into the state together. At the end all are in
 * the problem's final state. Outputs are poisoned first; where a call fails the test stops. */
void decode_with_recent(gpu_problem *problem, const fpa_kernel *kernel, int64_t most, fpa_form folding);

/* The outputs of a problem of a head with a window, `piece` tokens a call, by the parallel, the chunked and the recurrent form in
 * turn; each call has the state that was left last, in place, and the keys and values that it lacks. lags: every second call leaves
 * none, so that more than the window's are lacking. */
void run_with_window(gpu_problem *problem, const fpa_kernel *kernel, int window, int64_t piece, bool lags);

#endif
