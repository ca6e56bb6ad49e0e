#include "show_layer.h"

#include <stdio.h>
#include <string.h>

#include "head/head.h"

static int count_heads(const fpa_layer_spec *layer)
{
    int heads = 0;
    for (int i = 0; i < layer->part_count; i++)
        heads += layer->parts[i].count;
    return heads;
}

void print_layer(const fpa_head_list *list, const fpa_layer_spec *layer)
{
    const fpa_head *first = list->heads[layer->parts[0].head];
    printf("layer %s: %d heads, d %d, dv %d:", layer->name, count_heads(layer), head_width(first), first->dv);
    for (int i = 0; i < layer->part_count; i++)
        printf("%s %s x %d", i ? "," : "", list->heads[layer->parts[i].head]->name, layer->parts[i].count);
    putchar('\n');
}

void write_layer(fpa_json *json, const char *spec, const fpa_head_list *list, const fpa_layer_spec *layer)
{
    json_object(json, NULL);
    if (spec)
        json_text(json, "spec", spec);
    json_text(json, "layer", layer->name);
    json_text(json, "origin", layer->origin);
    json_integer(json, "heads", count_heads(layer));
    json_array(json, "parts");
    for (int i = 0; i < layer->part_count; i++) {
        json_object(json, NULL);
        json_text(json, "head", list->heads[layer->parts[i].head]->name);
        json_integer(json, "heads", layer->parts[i].count);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

void show_layers(const fpa_head_list *list, const char *name, fpa_json *json)
{
    for (int i = 0; i < list->layer_count; i++) {
        if (name && strcmp(name, list->layers[i].name) != 0)
            continue;
        if (json) {
            write_layer(json, NULL, list, &list->layers[i]);
        } else {
            putchar('\n');
            print_layer(list, &list->layers[i]);
        }
    }
}

bool is_of_layer(const fpa_head_list *list, const char *name, int head)
{
    const fpa_layer_spec *layer = layer_find(list, name);
    bool found = false;
    for (int i = 0; layer && i < layer->part_count; i++)
        found = found || layer->parts[i].head == head;
    return found;
}
