/* graphs: launches on a GPU, captured. */
#ifndef FPAC_COMMAND_GRAPHS_H
#define FPAC_COMMAND_GRAPHS_H

#include "device.h"

/* One for each set of operands: a graph holds their addresses. All zero: there are none. */
typedef struct fpa_graphs {
    const fpa_device *device;
    int64_t count;
    CUgraphExec *graph; /* [count] */
} fpa_graphs;

/* Graph g has the launches g .. g + each - 1 of the work. graphs_free also after an error. */
fpa_status graphs_make(const fpa_device *device, const fpa_work *work, int64_t count, int64_t each,
                       fpa_graphs *graphs, fpa_error *error);
void graphs_free(fpa_graphs *graphs);

/* Of an fpa_work whose user is a fpa_graphs: they take turns. */
fpa_status graphs_launch(void *user, int64_t number, CUstream stream, fpa_error *error);

#endif
