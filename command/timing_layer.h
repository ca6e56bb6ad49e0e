/* timing_layer: how long one forward of a layer takes, beside its parts each alone. */
#ifndef FPAC_COMMAND_TIMING_LAYER_H
#define FPAC_COMMAND_TIMING_LAYER_H

#include "runtime/api/layer.h"
#include "timing.h"

typedef struct fpa_layer_timing {
    double seconds, least, most; /* of the layer; on the CPU least and most are those of its samples, too */
    int repeats;
    double part[MOST_PARTS]; /* seconds of each part's own call, as fpac bench times a head */
    double sum;
} fpa_layer_timing;

/* load's heads are not looked at: each part has its own. On a GPU over so many sets of operands in turn that its cache does not
 * hold them, as time_forward does it; recurrent calls update a state in place there. */
fpa_status time_layer(const fpa_layer *layer, const fpa_load *load, fpa_layer_timing *timing,
                      fpa_error *error);

#endif
