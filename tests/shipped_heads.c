#include "shipped_heads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_spec(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && !strcmp(entry->d_name + length - 4, ".lua");
}

static void stop(const char *where, const char *message)
{
    fprintf(stderr, "%s: %s\n", where, message);
    exit(1);
}

static void load_spec(shipped_heads *all, const char *spec)
{
    fpa_head_list list;
    fpa_error error;
    if (spec_load(spec, &list, &error))
        stop(error.where, error.message);
    for (int i = 0; i < list.count; i++) {
        if (all->count == SHIPPED_MANY)
            stop(spec, "more heads than a test has room for: raise SHIPPED_MANY");
        shipped_head *item = &all->item[all->count++];
        snprintf(item->spec, sizeof item->spec, "%s", spec);
        item->head = list.heads[i];
        list.heads[i] = NULL;
    }
    head_list_free(&list);
}

void shipped_load(shipped_heads *all)
{
    struct dirent **names;
    int count = scandir("specs", &names, is_spec, alphasort);
    all->count = 0;
    if (count < 1)
        stop("specs", "there are none; run from the top of the repository");
    for (int i = 0; i < count; i++) {
        char path[SHIPPED_PATH];
        snprintf(path, sizeof path, "specs/%s", names[i]->d_name);
        load_spec(all, path);
        free(names[i]);
    }
    free(names);
}

void shipped_free(shipped_heads *all)
{
    for (int i = 0; i < all->count; i++)
        head_free(all->item[i].head);
    all->count = 0;
}
