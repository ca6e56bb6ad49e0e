/* planned: plans of heads that a test writes as text. */
#ifndef FPAC_TESTS_PLANNED_H
#define FPAC_TESTS_PLANNED_H

#include "gen/gen.h"
#include "gen/plan/plan.h"

typedef struct planned_head {
    fpa_head_list list;
    fpa_simplified simple;
    fpa_plan plan; /* borrows from the others */
} planned_head;

/* Of the spec's first head. The test fails with the place when there is no plan. */
void planned_spec(planned_head *made, const char *spec, const char *target);
/* body: a head's fields without its name, "d = 64, dv = 64, terms = linear {}"; in bf16 where it names no dtype. */
void planned_make(planned_head *made, const char *body, const char *target);
/* The same by one mechanism, and with what there is when it does not suit. */
void planned_make_as(planned_head *made, const char *body, const char *target, const char *mechanism);
fpa_status planned_try(planned_head *made, const char *body, const char *target, const char *mechanism,
                       fpa_error *error);
void planned_free(planned_head *made);

/* The kernels' constants of such a head. */
struct fpa_cuda_geometry planned_geometry(const char *body, const char *target);

#endif
