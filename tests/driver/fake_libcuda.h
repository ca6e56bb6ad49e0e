/* fake_libcuda: a driver for machines without a GPU. Its memory is the process's own, it launches nothing,
 * counts what is held, and fails when told to. A test compiles it to a library, names that in FPA_LIBCUDA,
 * and reaches its state through the symbol fake_state. */
#ifndef FPAC_TESTS_DRIVER_FAKE_LIBCUDA_H
#define FPAC_TESTS_DRIVER_FAKE_LIBCUDA_H

#include "abi/cuda_kernels.h"

struct fake_state {
    /* set by the test */
    int devices, capability;           /* 90: compute capability 9.0 */
    int shared_memory;                 /* of a block, bytes */
    int fail_at;                       /* the call that fails, counted from 1; 0: none does */
    int refuse_image;                  /* 1: no module can be loaded */
    int resident;                      /* blocks of any kernel on a multiprocessor */
    const char *missing;               /* the kernel or variable that modules do not have, or NULL */
    struct fpa_cuda_geometry geometry; /* of every module */
    unsigned long geometry_size;
    const void *object; /* the images that may be loaded, back to back, or NULL: any */
    unsigned long object_size;
    /* counted, by threads that call beside each other */
    _Atomic int calls;
    _Atomic int loads, strangers; /* images that were loaded; of these not among the object's */
    _Atomic int contexts, depth, modules, allocations; /* retained, pushed, loaded, not freed */
    _Atomic int streams, events;                       /* created, not destroyed */
    /* streams and events are "streams made so far" and "events made so far" as addresses; others: the caller's, "c" */
    unsigned long made_streams, made_events;
    unsigned long capture;         /* number of the capture that all made streams are in; 0: none */
    unsigned long callers_capture; /* the same of other streams */
    char trace[4096];              /* "record e1 on c;", "wait s1 for e1;", "launch on s1;" in turn */
};

#endif
