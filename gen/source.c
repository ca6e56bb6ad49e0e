#include "gen.h"

#include <stdlib.h>

#include "emit.h"
#include "plan.h"
#include "simplify.h"

/* What simplify and plan make of a head. */
typedef struct planned {
    fpa_simplified simple;
    fpa_plan plan;
} planned;

static void planned_free(planned *p)
{
    plan_free(&p->plan);
    simplified_free(&p->simple);
}

static fpa_status make_plan(const fpa_head *head, const char *target_name, planned *p, fpa_error *error)
{
    const fpa_target *target = target_find(target_name);
    *p = (planned){0};
    if (!target)
        return fail(error, FPA_UNSUPPORTED, target_name, "no such target; `fpac gen --help` lists them");
    fpa_status status = simplify(head, &p->simple, error);
    return status ? status : plan_choose(&p->simple, head, target, &p->plan, error);
}

fpa_status source_generate(const fpa_head *head, const char *target, fpa_source *source, fpa_error *error)
{
    planned p;
    *source = (fpa_source){0};
    fpa_status status = make_plan(head, target, &p, error);
    if (!status)
        status = emit_source(&p.plan, head, &source->code, &source->header, error);
    if (!status)
        source->facts = p.plan.facts;
    planned_free(&p);
    return status;
}

fpa_status source_describe(const fpa_head *head, const char *target, fpa_facts *facts, fpa_error *error)
{
    planned p;
    fpa_status status = make_plan(head, target, &p, error);
    *facts = status ? (fpa_facts){0} : p.plan.facts;
    planned_free(&p);
    return status;
}

void source_free(fpa_source *source)
{
    free(source->code);
    free(source->header);
    *source = (fpa_source){0};
}
