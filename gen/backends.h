/* backends: what the generator knows of each back end. Another one is a row of backends.c, a row in
 * machine/target.h and its targets, and one in runtime/backend.c. */
#ifndef FPAC_GEN_BACKENDS_H
#define FPAC_GEN_BACKENDS_H

#include "gen/plan/plan.h"

struct lua_State;

typedef struct fpa_generator {
    const char *name; /* what its targets' names begin with */
    fpa_status (*plan)(fpa_plan *plan, fpa_error *error);
    const char *(*mechanism)(int i); /* names, NULL behind the last one; NULL: it has one */
    bool (*is_left)(const fpa_plan *plan, int i, int form); /* it is for that form, and not chosen */
    void (*print)(FILE *out, const fpa_plan *plan);         /* --dump=plan */
    /* what its templates read: tables of fields, false when there are no more; and what is computed */
    bool (*fields)(const fpa_plan *plan, int i, fpa_field_set *set);
    void (*push)(struct lua_State *L, const fpa_plan *plan);
    const char *code, *header; /* templates of NAME.c or NAME.cu, and of NAME.h; NULL: there is none */
    const char *backward,
        *backward_header;           /* of the gradients' own texts; NULL: there are none, there is none */
    const char *backward_mechanism; /* by which the plan is made that their sizes are added to; NULL: any */
    fpa_status (*plan_backward)(fpa_plan *plan, fpa_error *error);
} fpa_generator;

const fpa_generator *generator_of(const fpa_target *target);

#endif
