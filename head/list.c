/* The list of heads of a spec file. */
#include <stdlib.h>
#include <string.h>

#include "head.h"
#include "layer.h"

enum { SHOWN_NAMES = 768 }; /* bytes of the list of names in a message */

void head_list_free(fpa_head_list *list)
{
    for (int i = 0; i < list->count; i++)
        head_free(list->heads[i]);
    for (int i = 0; i < list->layer_count; i++)
        layer_free(&list->layers[i]);
    free(list->heads);
    free(list->layers);
    *list = (fpa_head_list){0};
}

void head_list_keep(fpa_head_list *list, int head)
{
    fpa_head *kept = list->heads[head];
    list->heads[head] = list->heads[0];
    list->heads[0] = kept;
    while (list->count > 1)
        head_free(list->heads[--list->count]);
    while (list->layer_count > 0)
        layer_free(&list->layers[--list->layer_count]);
}

/* "a, b, c", cut with "..." when it grows too long. */
static void list_names(const fpa_head_list *list, char text[SHOWN_NAMES])
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < list->count; i++) {
        const char *name = list->heads[i]->name ? list->heads[i]->name : "?";
        size_t length = strlen(name);
        if (used + length + 8 > SHOWN_NAMES) {
            memcpy(text + used, ", ...", 6);
            return;
        }
        if (i > 0) {
            memcpy(text + used, ", ", 2);
            used += 2;
        }
        memcpy(text + used, name, length + 1);
        used += length;
    }
}

fpa_status head_list_find(const fpa_head_list *list, const char *name, const char *where,
                          const fpa_head **head, fpa_error *error)
{
    char names[SHOWN_NAMES];
    list_names(list, names);
    if (list->count == 0)
        return fail(error, FPA_INVALID, where, "there is no head here");
    if (!name && list->count > 1)
        return fail(error, FPA_INVALID, where, "there are %d heads, so name one of: %s", list->count, names);
    for (int i = 0; i < list->count; i++)
        if (!name || (list->heads[i]->name && strcmp(list->heads[i]->name, name) == 0)) {
            *head = list->heads[i];
            return FPA_OK;
        }
    if (name && layer_find(list, name))
        return fail(error, FPA_INVALID, where, "%.80s is a layer of heads, and no head (there is: %s)", name,
                    names);
    return fail(error, FPA_INVALID, where, "there is no head \"%.80s\" (there is: %s)", name, names);
}
