/* candidates: the ways in which a plan's kernels can compute a call, and the seconds that each takes by the cost
 * model of a machine. */
#ifndef FPAC_GEN_PLAN_CANDIDATES_H
#define FPAC_GEN_PLAN_CANDIDATES_H

#include "machine/candidate.h"
#include "machine/gpu_room.h"
#include "plan.h"

/* The machine for which times are computed. */
typedef struct fpa_machine {
    int threads;        /* threads, if the target is a CPU, which is that of this machine */
    const fpa_gpu *gpu; /* the GPU; NULL: the target's default row of machine/gpu.c */
} fpa_machine;

typedef struct fpa_candidate_list {
    int count;
    fpa_candidate *list; /* [count], those that cannot be used included */
    int fastest;         /* index of the fastest one; -1: none can be used */
    const char *machine; /* name of the machine, and source of its numbers */
    fpa_gpu_room room;   /* CUDA targets: what fits on the GPU; else zeros */
} fpa_candidate_list;

/* All candidates of a call on that machine. The caller frees the list (candidate_list_free). */
fpa_status plan_candidates(const fpa_plan *plan, const fpa_call_size *size, fpa_machine machine,
                           fpa_candidate_list *list, fpa_error *error);
void candidate_list_free(fpa_candidate_list *list);

/* A mechanism that the plan has not chosen, with the time of the call by its kernels. */
typedef struct fpa_alternative {
    const char *mechanism;
    char why[sizeof((fpa_error *)0)->message]; /* why it cannot serve the head; empty: it can */
    /* if it can: the fastest of its candidates; refused: it does not implement the form */
    fpa_candidate fastest;
} fpa_alternative;

/* The next mechanism, from index *next on, that the plan has not chosen; *next advances. False: there is no other
 * one. If planning fails for a reason that is not the head's, such as lack of memory, `why` is that error. */
bool plan_alternative(const fpa_plan *plan, const fpa_simplified *simple, const fpa_head *written,
                      const fpa_call_size *size, fpa_machine machine, int *next,
                      fpa_alternative *alternative);

#endif
