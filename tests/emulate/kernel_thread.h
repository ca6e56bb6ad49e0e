/* kernel_thread: what a thread of an emitted kernel runs; included behind an emitted file (C++17). */
#ifndef FPAC_TESTS_EMULATE_KERNEL_THREAD_H
#define FPAC_TESTS_EMULATE_KERNEL_THREAD_H

#include "emulate.h"

namespace emulate
{

typedef struct fpa_cuda_call call_type;
#ifdef EMULATED_BACKWARD
typedef struct fpa_cuda_backward maps_type;
#else
typedef struct fpa_cuda_maps maps_type;
#endif

void run_thread(void)
{
#ifdef EMULATED_WEIGHTS
    const struct run_time_weights *w = (const struct run_time_weights *)weights;
    if (maps && w)
        ((void (*)(call_type, maps_type, struct run_time_weights))kernel)(*parameters,
                                                                          *(const maps_type *)maps, *w);
    else if (w)
        ((void (*)(call_type, struct run_time_weights))kernel)(*parameters, *w);
    else
#endif
        if (maps)
        ((void (*)(call_type, maps_type))kernel)(*parameters, *(const maps_type *)maps);
    else
        ((void (*)(call_type))kernel)(*parameters);
    threads[current].done = true;
    leave();
}

} // namespace emulate

#endif
