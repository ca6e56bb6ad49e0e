/* graphs: launches on a GPU, captured in CUDA graphs. */
#ifndef FPAC_COMMAND_GRAPHS_H
#define FPAC_COMMAND_GRAPHS_H

#include "device.h"

/* Graphs, one for each set of operands, whose addresses it contains. All zero: there are none. */
typedef struct fpa_graphs {
    const fpa_device *device;
    int64_t count;
    CUgraphExec *graph; /* [count] */
} fpa_graphs;

/* Make `count` graphs; graph g has the launches g .. g + each - 1 of the work. Call graphs_free afterwards, also
 * after an error. */
fpa_status graphs_make(const fpa_device *device, const fpa_work *work, int64_t count, int64_t each,
                       fpa_graphs *graphs, fpa_error *error);
void graphs_free(fpa_graphs *graphs);

/* The launch function of an fpa_work whose user is an fpa_graphs: launch `number` replays graph number % count. */
fpa_status graphs_launch(void *user, int64_t number, CUstream stream, fpa_error *error);

#endif
