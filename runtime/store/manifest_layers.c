#include "manifest_layers.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LAYERS = 1 << 16 };

static const char count_word[] = "layers", layer_word[] = "layer", part_word[] = "part";

void layers_print(FILE *text, const fpa_manifest *manifest)
{
    fprintf(text, "%s %d\n", count_word, manifest->layer_count);
    for (int i = 0; i < manifest->layer_count; i++) {
        const fpa_bundle_layer *layer = &manifest->layers[i];
        fprintf(text, "%s %s %d\n", layer_word, layer->name, layer->part_count);
        for (int p = 0; p < layer->part_count; p++)
            fprintf(text, "%s %s %d\n", part_word, layer->parts[p].head, layer->parts[p].heads);
        fprintf(text, "end\n");
    }
}

bool manifest_has_head(const fpa_manifest *manifest, const char *name)
{
    for (int i = 0; i < manifest->count; i++)
        if (strcmp(manifest->entries[i].facts.name, name) == 0)
            return true;
    return false;
}

const fpa_bundle_layer *manifest_find_layer(const fpa_manifest *manifest, const char *name)
{
    for (int i = 0; i < manifest->layer_count; i++)
        if (strcmp(manifest->layers[i].name, name) == 0)
            return &manifest->layers[i];
    return NULL;
}

/* Parses "WORD NAME NUMBER" in the next line. */
static bool parse_numbered(fpa_lines *r, const char *word, int64_t most, char name[HEAD_MAX_NAME + 1],
                           int *number)
{
    char *first, *second;
    int64_t parsed;
    if (!lines_next(r) || !words_split(lines_after(r, word), &first, &second) || !is_plain_name(first) ||
        !whole_parse(second, most, &parsed) || parsed < 1)
        return false;
    *number = (int)parsed;
    return word_copy(name, HEAD_MAX_NAME + 1, first);
}

static fpa_status parse_layer(fpa_lines *r, const fpa_manifest *manifest, fpa_bundle_layer *layer)
{
    char name[HEAD_MAX_NAME + 1];
    int count;
    if (!parse_numbered(r, layer_word, LAYER_MAX_PARTS, name, &count))
        return lines_refuse(r, "layer NAME PARTS");
    if (manifest_has_head(manifest, name) || manifest_find_layer(manifest, name))
        return lines_refuse(r, "layer with a name that nothing else has");
    for (int p = 0; p < count; p++) {
        if (!parse_numbered(r, part_word, LAYER_MAX_HEADS, layer->parts[p].head, &layer->parts[p].heads))
            return lines_refuse(r, "part HEAD HEADS");
        if (!manifest_has_head(manifest, layer->parts[p].head))
            return lines_refuse(r, "part with a head of the entries");
    }
    if (!lines_next(r) || strcmp(r->line, "end") != 0)
        return lines_refuse(r, "end");
    memcpy(layer->name, name, sizeof name);
    layer->part_count = count;
    return FPA_OK;
}

/* Reads the layers. Each has more than 16 bytes of text, which limits their number before memory is allocated. */
fpa_status layers_parse(fpa_lines *r, size_t size, fpa_manifest *manifest)
{
    int64_t count = 0;
    char *text = lines_next(r) ? lines_after(r, count_word) : NULL;
    if (!text || !whole_parse(text, MAX_LAYERS, &count) || (size_t)count > size / 16)
        return lines_refuse(r, "layers NUMBER");
    manifest->layers = calloc((size_t)count + 1, sizeof *manifest->layers);
    if (!manifest->layers)
        return fail_memory(r->error);
    fpa_status status = FPA_OK;
    for (int i = 0; i < count && !status; i++) {
        status = parse_layer(r, manifest, &manifest->layers[i]);
        manifest->layer_count += !status;
    }
    return status;
}
