/* compile_job: one head, compiled by NVRTC for one target, and what the cubin is held against; for tests. */
#ifndef FPAC_TESTS_COMPILE_JOB_H
#define FPAC_TESTS_COMPILE_JOB_H

#include "dear.h"
#include "gen/gen.h"

/* One head for one target, and what became of it. */
typedef struct compile_job {
    const fpa_head *head;
    const fpa_target *target;
    bool backward; /* its gradients */
    char *code;    /* NULL, or its text with some of the kernels alone; malloc'ed, given away when it runs */
    char *others;  /* the same, with kernels of which it is only asked that they compile: nvrtc_hurry.h */
    bool hurried;  /* NVRTC does: registers and spills are no question */
    int group;     /* of the caller's */
    fpa_dtype dtype; /* of the head when it was given */
    fpa_status status;
    double seconds;     /* that it took, on a busy machine more */
    bool too_large;     /* for a block of a small GPU, as it was refused with */
    char problem[1024]; /* what is wrong; empty: nothing */
} compile_job;

/* Whether a refusal is that of a head of very many rows, which do not fit into a block of GPUs with little
 * shared memory; it tells the figures. On those with the most (227 KiB) every shipped head fits. */
bool compile_too_large(const fpa_target *target, fpa_status status, const fpa_error *error);

/* All of them, at once: generate, compile, and check names, bounds, registers, spills, shared memory and the geometry; then
 * the others, whose registers and spills are those of a hurry. */
void compile_jobs_run(int count, compile_job *jobs);

/* Of its kernels those that reach a function which is not in the set yet (kernels.h), in a hurry, and before them the one of that name,
 * the longest where that is empty, optimised (NULL: none); stops the test where there is no such kernel or the text cannot be generated, unless it is too large. */
void compile_job_choose(compile_job *job, function_set *reached, const char *optimised);
void compile_job_forget(compile_job *job);

#endif
