/* bench_layer: a layer of unlike heads, beside its parts each alone. */
#ifndef FPAC_COMMAND_BENCH_LAYER_H
#define FPAC_COMMAND_BENCH_LAYER_H

#include "bench_candidates.h"
#include "head/layer.h"

/* Opens the layer, times it and its parts, and prints a few lines, or JSON. The list stays as it is. */
fpa_status bench_layer(const bench_job *job, const fpa_head_list *list, const fpa_layer_spec *layer,
                       fpa_error *error);

#endif
