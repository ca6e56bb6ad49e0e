/* candidates: how a plan's kernels can carry out a call, and the seconds that each way takes by the model of
 * a machine. */
#ifndef FPAC_GEN_PLAN_CANDIDATES_H
#define FPAC_GEN_PLAN_CANDIDATES_H

#include "machine/candidate.h"
#include "machine/gpu_room.h"
#include "plan.h"

/* The machine that runs them. */
typedef struct fpa_machine {
    int threads;        /* of a CPU, which is the one here */
    const fpa_gpu *gpu; /* NULL: the one that the target's code is usually run on */
} fpa_machine;

typedef struct fpa_candidate_list {
    int count;
    fpa_candidate *list; /* [count], the refused ones too */
    int fastest;         /* of them; -1: none suits */
    const char *machine; /* which machine, and where its numbers are from */
    fpa_gpu_room room;   /* on it, of CUDA targets; else zeros */
} fpa_candidate_list;

/* All candidates of a call, on that machine. candidate_list_free. */
fpa_status plan_candidates(const fpa_plan *plan, const fpa_call_size *size, fpa_machine machine,
                           fpa_candidate_list *list, fpa_error *error);
void candidate_list_free(fpa_candidate_list *list);

/* A mechanism that the plan has not chosen: what a call would take by its kernels. */
typedef struct fpa_alternative {
    const char *mechanism;
    char why[sizeof((fpa_error *)0)->message]; /* it does not suit the head; empty: it does, and */
    fpa_candidate fastest; /* of its own candidates; refused: it does not carry the form out */
} fpa_alternative;

/* The next one behind mechanism number *next of the target, which goes on; false: there is no other. An error, as where
 * memory is short, is one that says nothing of the head. */
bool plan_alternative(const fpa_plan *plan, const fpa_simplified *simple, const fpa_head *written,
                      const fpa_call_size *size, fpa_machine machine, int *next,
                      fpa_alternative *alternative);

#endif
