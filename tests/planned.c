#include "planned.h"
#include "claims.h"

#include <stdio.h>
#include <string.h>

static fpa_status make(planned_head *made, const char *spec, const char *target, const char *mechanism,
                       fpa_error *error)
{
    *made = (planned_head){0};
    fpa_status status = spec_load_text("planned.lua", NULL, spec, strlen(spec), &made->list, error);
    if (!status)
        status = simplify(made->list.heads[0], &made->simple, error);
    if (!status)
        status = plan_choose_as(&made->simple, made->list.heads[0], target_find(target), mechanism,
                                &made->plan, error);
    return status;
}

void planned_spec(planned_head *made, const char *spec, const char *target)
{
    fpa_error error;
    if (make(made, spec, target, NULL, &error))
        fail_msg("%s: %s: %s", spec, error.where, error.message);
}

fpa_status planned_try(planned_head *made, const char *body, const char *target, const char *mechanism,
                       fpa_error *error)
{
    char spec[512];
    const char *dtype = strstr(body, "dtype") ? "" : "dtype = 'bf16', ";
    assert_true(snprintf(spec, sizeof spec, "return head { name = 'h', %s%s }", dtype, body) <
                (int)sizeof spec);
    return make(made, spec, target, mechanism, error);
}

void planned_make_as(planned_head *made, const char *body, const char *target, const char *mechanism)
{
    fpa_error error;
    if (planned_try(made, body, target, mechanism, &error))
        fail_msg("%s: %s: %s", body, error.where, error.message);
}

void planned_make(planned_head *made, const char *body, const char *target)
{
    planned_make_as(made, body, target, NULL);
}

void planned_free(planned_head *made)
{
    plan_free(&made->plan);
    simplified_free(&made->simple);
    head_list_free(&made->list);
}

struct fpa_cuda_geometry planned_geometry(const char *body, const char *target)
{
    planned_head made;
    planned_make(&made, body, target);
    const struct fpa_cuda_geometry geometry = made.plan.cuda.geometry;
    planned_free(&made);
    return geometry;
}
