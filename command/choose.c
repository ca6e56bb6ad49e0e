/* choose: what an operand or option names: heads of a spec, a target, a form. */
#include <stdio.h>
#include <string.h>

#include "command.h"

static int find_index(const fpa_head_list *list, const fpa_head *head)
{
    for (int i = 0; i < list->count; i++) {
        if (list->heads[i] == head)
            return i;
    }
    return 0;
}

fpa_status select_heads(const char *spec, const char *name, fpa_head_list *list, int *first, int *end,
                        fpa_error *error)
{
    fpa_status status = spec_load(spec, list, error);
    if (status)
        return status;
    *first = 0;
    *end = list->count;
    if (!name)
        return FPA_OK;
    const fpa_head *head;
    status = head_list_find(list, name, spec, &head, error);
    if (status) {
        head_list_free(list);
        return status;
    }
    *first = find_index(list, head);
    *end = *first + 1;
    return FPA_OK;
}

static fpa_status unknown_target(const char *name, fpa_error *error)
{
    char names[256] = "";
    for (int i = 0; i < target_count(); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", target_at(i)->name);
    }
    return fail(error, FPA_INVALID, name, "is no target; there are c (the best for this machine), %s", names);
}

fpa_status select_target(const char *name, const fpa_target **target, fpa_error *error)
{
    *target = !name || !strcmp(name, "c") ? target_best() : target_find(name);
    return *target ? FPA_OK : unknown_target(name ? name : "c", error);
}

fpa_status select_form(const char *name, int *form, fpa_error *error)
{
    *form = -1;
    if (!strcmp(name, "auto"))
        return FPA_OK;
    for (int i = 0; i < FORMS; i++) {
        if (!strcmp(name, form_name(i))) {
            *form = i;
            return FPA_OK;
        }
    }
    return fail(error, FPA_INVALID, "--form", "%s is no form; there are auto, parallel, chunked, recurrent",
                name);
}
