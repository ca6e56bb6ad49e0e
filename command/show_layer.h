/* show_layer: a layer of a spec, for people and as JSON. */
#ifndef FPAC_COMMAND_SHOW_LAYER_H
#define FPAC_COMMAND_SHOW_LAYER_H

#include "head/layer.h"
#include "json.h"

/* Print a layer: "layer hybrid: 12 heads, d 64, dv 64: power2 x 8, gated x 4". */
void print_layer(const fpa_head_list *list, const fpa_layer_spec *layer);

/* Write a layer as JSON. spec: the file, or NULL. */
void write_layer(fpa_json *json, const char *spec, const fpa_head_list *list, const fpa_layer_spec *layer);

/* Show all layers, or the one of that name, each after an empty line. json NULL: for people. */
void show_layers(const fpa_head_list *list, const char *name, fpa_json *json);

/* Whether head `head` of the list belongs to the layer of that name. */
bool is_of_layer(const fpa_head_list *list, const char *name, int head);

#endif
