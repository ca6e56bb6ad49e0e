/* backends: the generator's functions and templates for each back end. To add a back end, add a row to backends.c,
 * a row to machine/target.h with its targets, and a row to runtime/backend.c. */
#ifndef FPAC_GEN_BACKENDS_H
#define FPAC_GEN_BACKENDS_H

#include "gen/plan/plan.h"

struct lua_State;

typedef struct fpa_generator {
    const char *name; /* prefix of its targets' names */
    fpa_status (*plan)(fpa_plan *plan, fpa_error *error);
    /* name of mechanism i; NULL after the last one. Function NULL: there is one mechanism */
    const char *(*mechanism)(int i);
    /* whether mechanism i serves that form and is not the chosen one */
    bool (*is_left)(const fpa_plan *plan, int i, int form);
    void (*print)(FILE *out, const fpa_plan *plan); /* --dump=plan */
    /* what its templates read: `fields` gives table i of struct fields (false: there are no more), `push` adds
     * computed values */
    bool (*fields)(const fpa_plan *plan, int i, fpa_field_set *set);
    void (*push)(struct lua_State *L, const fpa_plan *plan);
    const char *code, *header; /* templates of NAME.c or NAME.cu, and of NAME.h (NULL: no header) */
    const char *backward,
        *backward_header;           /* of the gradients' own texts; NULL: there are none, there is none */
    const char *backward_mechanism; /* mechanism of the plan that plan_backward extends; NULL: any */
    fpa_status (*plan_backward)(fpa_plan *plan, fpa_error *error);
} fpa_generator;

const fpa_generator *generator_of(const fpa_target *target);

#endif
