#include "bundle_heads.h"
#include "base/file.h"
#include "gen/spec/spec.h"
#include "runtime/store/bundle_choice.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool is_bundle(const char *path)
{
    char *manifest = file_path(path, MANIFEST_NAME);
    const bool is = manifest && access(manifest, F_OK) == 0;
    free(manifest);
    return is;
}

/* Reads the head of an entry; its origin is the file. */
static fpa_status read_head(const char *folder, const fpa_bundle_file *listed, fpa_head **head,
                            fpa_error *error)
{
    fpa_file file;
    fpa_status status = bundle_read_file(folder, listed, &file, error);
    if (status)
        return status;
    status = head_parse((const char *)file.bytes, file.size, head, error);
    free(file.bytes);
    if (!status && !((*head)->origin = arena_format(&(*head)->memory, "%s/%s", folder, listed->name))) {
        head_free(*head);
        *head = NULL;
        status = fail_memory(error);
    }
    return status;
}

static int find_head(const fpa_head_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->heads[i]->name, name) == 0)
            return i;
    return -1;
}

static fpa_status read_heads(const char *folder, const fpa_manifest *manifest, fpa_head_list *list,
                             fpa_error *error)
{
    fpa_status status = FPA_OK;
    list->count = 0;
    list->heads = calloc((size_t)manifest->count + 1, sizeof(fpa_head *));
    if (!list->heads)
        return fail_memory(error);
    for (int i = 0; i < manifest->count && !status; i++) {
        const fpa_bundle_entry *entry = &manifest->entries[i];
        if (find_head(list, entry->facts.name) >= 0)
            continue;
        fpa_head *head = NULL;
        status = read_head(folder, &entry->files[MANIFEST_HEAD], &head, error);
        if (status)
            break;
        list->heads[list->count++] = head;
        if (strcmp(head->name, entry->facts.name) != 0)
            status = fail(error, FPA_LOAD, entry->files[MANIFEST_HEAD].name,
                          "is of head %s, but the manifest says %s", head->name, entry->facts.name);
    }
    return status;
}

/* Copies a layer; its heads are in the list, as the reader of the manifest has checked. */
static fpa_status copy_layer(const char *folder, const fpa_bundle_layer *listed, const fpa_head_list *list,
                             fpa_layer_spec *layer, fpa_error *error)
{
    const fpa_head *heads[LAYER_MAX_PARTS];
    int counts[LAYER_MAX_PARTS];
    *layer = (fpa_layer_spec){.name = strdup(listed->name),
                              .origin = file_path(folder, MANIFEST_NAME),
                              .part_count = listed->part_count,
                              .parts = calloc((size_t)listed->part_count, sizeof *layer->parts)};
    if (!layer->name || !layer->origin || !layer->parts)
        return fail_memory(error);
    for (int p = 0; p < listed->part_count; p++) {
        counts[p] = listed->parts[p].heads;
        layer->parts[p] = (fpa_layer_share){find_head(list, listed->parts[p].head), counts[p]};
        heads[p] = list->heads[layer->parts[p].head];
    }
    return layer_validate(layer->name, heads, counts, layer->part_count, error);
}

static fpa_status copy_layers(const char *folder, const fpa_manifest *manifest, fpa_head_list *list,
                              fpa_error *error)
{
    fpa_status status = FPA_OK;
    list->layers = calloc((size_t)manifest->layer_count + 1, sizeof *list->layers);
    if (!list->layers)
        return fail_memory(error);
    for (int i = 0; i < manifest->layer_count && !status; i++)
        status = copy_layer(folder, &manifest->layers[i], list, &list->layers[list->layer_count++], error);
    return status;
}

static fpa_status load_bundle(const char *folder, fpa_head_list *list, fpa_error *error)
{
    fpa_manifest manifest = {0};
    *list = (fpa_head_list){0};
    fpa_status status = bundle_read_manifest(folder, &manifest, error);
    if (!status)
        status = read_heads(folder, &manifest, list, error);
    if (!status)
        status = copy_layers(folder, &manifest, list, error);
    manifest_free(&manifest);
    if (status)
        head_list_free(list);
    return status;
}

fpa_status load_heads(const char *path, const char *wanted, fpa_head_list *list, fpa_error *error)
{
    return is_bundle(path) ? load_bundle(path, list, error) : spec_load_head(path, wanted, list, error);
}
