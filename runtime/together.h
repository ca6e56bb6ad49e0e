/* together: launches of several modules of one back end as one call, such as those of a layer's heads.
 *
 * Given: parts, each a launch of a module, already checked; no part writes data of another one. Gives: their
 * results, with the same bits as separate launches. A back end without this table (backend.h) has no layers. */
#ifndef FPAC_RUNTIME_TOGETHER_H
#define FPAC_RUNTIME_TOGETHER_H

#include "backend.h"

enum { MOST_PARTS = 64 };

typedef struct fpa_part {
    const fpa_module *module;
    int form;
    struct fpa_launch launch; /* `forward` sets its workspace */
    double work;              /* operations for one head of one sequence */
    bool chosen;              /* `fastest` is set, by the module's choose */
    fpa_candidate fastest;    /* the candidate for this launch */
} fpa_part;

typedef struct fpa_together {
    /* open makes once what calls on these modules need of the device (*handle); the modules must outlive it. */
    fpa_status (*open)(const fpa_module *const *modules, int count, void **handle, fpa_error *error);
    void (*close)(void *handle);
    size_t (*workspace)(const fpa_part *parts, int count);
    /* As fpa_module's forward, for all parts: it sets their workspaces, allocates nothing, and does not wait for a
     * device. */
    fpa_status (*forward)(void *handle, fpa_part *parts, int count, void *workspace, size_t size,
                          void *stream, fpa_error *error);
} fpa_together;

/* order: the indices of the parts, in order of decreasing work; equal ones in their given order. */
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
