/* bench_layer: the time of a layer, compared with those of its parts alone. */
#ifndef FPAC_COMMAND_BENCH_LAYER_H
#define FPAC_COMMAND_BENCH_LAYER_H

#include "bench_candidates.h"
#include "head/layer.h"

/* Open the layer, time it and its parts, and print a few lines, or JSON. The list is not changed. */
fpa_status bench_layer(const bench_job *job, const fpa_head_list *list, const fpa_layer_spec *layer,
                       fpa_error *error);

#endif
