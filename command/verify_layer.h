/* verify_layer: compares a layer's call with calls of its heads, which must give the same bits. */
#ifndef FPAC_COMMAND_VERIFY_LAYER_H
#define FPAC_COMMAND_VERIFY_LAYER_H

#include "json.h"
#include "options.h"
#include "runtime/api/fpa.h"

/* Open each layer of the specs, or the one of that name, which verifies its heads, and compare o and states of its
 * calls with those of its heads, in every form that all heads have. Prints a line for each, or JSON. Returns the
 * exit code; `code` is that of earlier work. dtype: NULL, or the type that replaces the heads' own. */
int verify_layers(const fpa_texts *specs, const char *name, const char *dtype, const fpa_options *options,
                  fpa_json *json, int code);

#endif
