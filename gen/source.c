#include "gen.h"
#include "machine/target.h"

#include <stdlib.h>

#include "gen/emit/emit.h"
#include "gen/plan/plan.h"
#include "gen/simplify/simplify.h"

/* head -> simplify -> plan -> emit */
fpa_status source_generate(const fpa_head *head, const char *target_name, fpa_source *source,
                           fpa_error *error)
{
    const fpa_target *target = target_find(target_name);
    fpa_simplified simple = {0};
    fpa_plan plan = {0};
    *source = (fpa_source){0};
    if (!target)
        return fail(error, FPA_UNSUPPORTED, target_name, "no such target; `fpac gen --help` lists them");
    fpa_status status = simplify(head, &simple, error);
    if (status)
        return status;
    if ((status = plan_choose(&simple, head, target, &plan, error)))
        goto out;
    if ((status = emit_source(&plan, head, &source->code, &source->header, error)))
        goto out;
    source->facts = plan.facts;
out:
    plan_free(&plan);
    simplified_free(&simple);
    return status;
}

void source_free(fpa_source *source)
{
    free(source->code);
    free(source->header);
    *source = (fpa_source){0};
}
