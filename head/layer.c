#include "layer.h"

#include <stdlib.h>
#include <string.h>

#include "lift.h"

void layer_free(fpa_layer_spec *layer)
{
    free(layer->name);
    free(layer->origin);
    free(layer->parts);
    *layer = (fpa_layer_spec){0};
}

const fpa_layer_spec *layer_find(const fpa_head_list *list, const char *name)
{
    if (!name)
        return list->layer_count == 1 ? &list->layers[0] : NULL;
    for (int i = 0; i < list->layer_count; i++)
        if (strcmp(list->layers[i].name, name) == 0)
            return &list->layers[i];
    return NULL;
}

/* Checks that a head has the property that the layer's first head has. */
static fpa_status check_number(const char *name, const char *what, const fpa_head *head, long long has,
                               int at, const fpa_head *first, long long wanted, fpa_error *error)
{
    if (has == wanted)
        return FPA_OK;
    return fail(error, FPA_INVALID, name,
                "part %d of the layer is %s, whose %s is %lld, but that of %s is %lld", at + 1, head->name,
                what, has, first->name, wanted);
}

static fpa_status check_type(const char *name, const char *what, const fpa_head *head, fpa_dtype has, int at,
                             const fpa_head *first, fpa_dtype wanted, fpa_error *error)
{
    if (has == wanted)
        return FPA_OK;
    return fail(error, FPA_INVALID, name, "part %d of the layer is %s, whose %s is %s, but that of %s is %s",
                at + 1, head->name, what, dtype_name(has), first->name, dtype_name(wanted));
}

/* Numbers of a head's position; a head without positions fits any: `others`. */
static int positions_of(const fpa_head *head, int others)
{
    return head->lift && head->lift->positions ? head->lift->positions : others;
}

static fpa_status check_count(const char *name, const fpa_head *head, int count, int at, fpa_error *error)
{
    const int heads = lift_heads(head);
    if (count < 1 || count > LAYER_MAX_HEADS)
        return fail(error, FPA_INVALID, name, "part %d of the layer has %d heads, but 1 to %d are needed",
                    at + 1, count, LAYER_MAX_HEADS);
    if (heads && heads != count)
        return fail(error, FPA_INVALID, name,
                    "part %d of the layer has %d heads, but the constants of %s are for %d", at + 1, count,
                    head->name, heads);
    return FPA_OK;
}

fpa_status layer_validate(const char *name, const fpa_head *const *heads, const int *counts, int part_count,
                          fpa_error *error)
{
    int positions = 0;
    const fpa_head *placed = NULL; /* the first head with positions */
    if (part_count < 1 || part_count > LAYER_MAX_PARTS)
        return fail(error, FPA_INVALID, name, "the layer has %d parts, but 1 to %d are needed", part_count,
                    LAYER_MAX_PARTS);
    for (int i = 0; i < part_count; i++) {
        const fpa_head *head = heads[i], *first = heads[0];
        fpa_status status = check_count(name, head, counts[i], i, error);
        if (!status)
            status = check_number(name, "d", head, head_width(head), i, first, head_width(first), error);
        if (!status)
            status = check_number(name, "dv", head, head->dv, i, first, first->dv, error);
        if (!status)
            status = check_type(name, "dtype", head, head->dtype, i, first, first->dtype, error);
        if (!status)
            status =
                check_type(name, "state_dtype", head, head->state_dtype, i, first, first->state_dtype, error);
        if (!status && placed)
            status = check_number(name, "number of positions", head, positions_of(head, positions), i, placed,
                                  positions, error);
        if (status)
            return status;
        if (!placed && positions_of(head, 0)) {
            placed = head;
            positions = positions_of(head, 0);
        }
    }
    return FPA_OK;
}
