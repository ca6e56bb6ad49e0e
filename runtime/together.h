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
    double work;              /* operations of one head of one sequence: what takes long begins first */
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

/* Numbers of the parts, those with the most work first. */
static inline void together_order(const fpa_part *parts, int count, bool of_a_head, int order[MOST_PARTS])
{
    for (int i = 0; i < count; i++) {
        const struct fpa_launch *a = &parts[i].launch;
        const double work = parts[i].work * (of_a_head ? 1 : (double)(a->batch * a->heads));
        int at = i;
        for (; at > 0; at--) {
            const struct fpa_launch *b = &parts[order[at - 1]].launch;
            if (parts[order[at - 1]].work * (of_a_head ? 1 : (double)(b->batch * b->heads)) >= work)
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

#endif
