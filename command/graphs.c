#include "graphs.h"

#include <stdlib.h>

/* Captures launches; the capture is ended whether they succeed or not. */
static fpa_status capture(const fpa_graphs *graphs, const fpa_work *work, int64_t first, int64_t each,
                          CUgraph *graph, fpa_error *error)
{
    const fpa_device *device = graphs->device;
    fpa_error ending;
    fpa_status status = device_check(
        device, device->driver->cuStreamBeginCapture(device->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "beginning a graph", error);
    if (status)
        return status;
    for (int64_t i = 0; i < each && !status; i++)
        status = work->launch(work->user, first + i, device->stream, error);
    const fpa_status ended = device_check(device, device->driver->cuStreamEndCapture(device->stream, graph),
                                          "capturing a graph", &ending);
    if (!status && ended)
        *error = ending;
    return status ? status : ended;
}

static fpa_status make_one(fpa_graphs *graphs, const fpa_work *work, int64_t number, int64_t each,
                           fpa_error *error)
{
    const fpa_device *device = graphs->device;
    CUgraph graph = NULL;
    fpa_status status = capture(graphs, work, number, each, &graph, error);
    if (!status)
        status = device_check(device, device->driver->cuGraphInstantiate(&graphs->graph[number], graph, 0),
                              "instantiating a graph", error);
    if (graph)
        device->driver->cuGraphDestroy(graph);
    return status;
}

/* A launch outside of a graph comes first: it may load code, which is impossible during a capture. */
fpa_status graphs_make(const fpa_device *device, const fpa_work *work, int64_t count, int64_t each,
                       fpa_graphs *graphs, fpa_error *error)
{
    *graphs =
        (fpa_graphs){.device = device, .count = count, .graph = calloc((size_t)count, sizeof *graphs->graph)};
    fpa_status status =
        graphs->graph ? work->launch(work->user, 0, device->stream, error) : fail_memory(error);
    if (!status)
        status = device_check(device, device->driver->cuStreamSynchronize(device->stream), "the first launch",
                              error);
    for (int64_t g = 0; g < count && !status; g++)
        status = make_one(graphs, work, g, each, error);
    return status;
}

void graphs_free(fpa_graphs *graphs)
{
    for (int64_t g = 0; graphs->graph && g < graphs->count; g++)
        if (graphs->graph[g])
            graphs->device->driver->cuGraphExecDestroy(graphs->graph[g]);
    free(graphs->graph);
    *graphs = (fpa_graphs){0};
}

fpa_status graphs_launch(void *user, int64_t number, CUstream stream, fpa_error *error)
{
    const fpa_graphs *graphs = user;
    return device_check(graphs->device,
                        graphs->device->driver->cuGraphLaunch(graphs->graph[number % graphs->count], stream),
                        "launching a graph", error);
}
