/* verify_layer: a layer's call beside calls of its heads: the same bits. */
#ifndef FPAC_COMMAND_VERIFY_LAYER_H
#define FPAC_COMMAND_VERIFY_LAYER_H

#include "json.h"
#include "options.h"
#include "runtime/api/fpa.h"

/* Opens each layer of the specs, or the one named, whose heads are verified by that, and compares o and states of its calls in
 * every form that all heads have. A line each, or JSON. The exit code, given that of what was before. dtype: NULL, or what
 * stands for the heads' own. */
int verify_layers(const fpa_texts *specs, const char *name, const char *dtype, const fpa_options *options,
                  fpa_json *json, int code);

#endif
