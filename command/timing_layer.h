/* timing_layer: the time of one forward of a layer, compared with its parts alone. */
#ifndef FPAC_COMMAND_TIMING_LAYER_H
#define FPAC_COMMAND_TIMING_LAYER_H

#include "runtime/api/layer.h"
#include "timing.h"

typedef struct fpa_layer_timing {
    double seconds, least, most; /* median, least and most seconds of the layer */
    int repeats;
    double part[MOST_PARTS]; /* seconds of each part's own call, timed as a head */
    double sum;
} fpa_layer_timing;

/* Time a layer and its parts; load->heads is ignored, since each part has its own number. On a GPU so many sets of
 * operands are used alternately that its cache cannot hold them, as in time_forward; recurrent calls update a
 * state in place there. */
fpa_status time_layer(const fpa_layer *layer, const fpa_load *load, fpa_layer_timing *timing,
                      fpa_error *error);

#endif
