/* together: launches of several modules of one back end as one call, as of a layer's heads.
 *
 * Given: parts, each a module's launch that was checked; nothing that one writes is another's. Gives: their results,
 * bit for bit those of the launches by themselves. A back end without a row (backend.h) has no layers. */
#ifndef FPAC_RUNTIME_TOGETHER_H
#define FPAC_RUNTIME_TOGETHER_H

#include "backend.h"

enum { MOST_PARTS = 64 };

typedef struct fpa_part {
    const fpa_module *module;
    int form;
    struct fpa_launch launch; /* its workspace is set by forward */
    double work;              /* operations of one head of one sequence */
    bool chosen;              /* by the module's choose: */
    fpa_candidate fastest;    /* how it is carried out */
} fpa_part;

typedef struct fpa_together {
    /* What calls of parts of these modules, which outlive it, need of the device: made once. */
    fpa_status (*open)(const fpa_module *const *modules, int count, void **handle, fpa_error *error);
    void (*close)(void *handle);
    size_t (*workspace)(const fpa_part *parts, int count);
    /* As fpa_module's forward: allocates nothing, waits for nothing on a device. Sets the parts' workspaces. */
    fpa_status (*forward)(void *handle, fpa_part *parts, int count, void *workspace, size_t size,
                          void *stream, fpa_error *error);
} fpa_together;

/* Numbers of the parts, those with the most work first; of as much in their order. */
static inline void together_order(const double *work, int count, int order[MOST_PARTS])
{
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && work[order[at - 1]] < work[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

#endif
