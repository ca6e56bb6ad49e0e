/* layer: heads that one call computes side by side, some of each; as data. */
#ifndef FPAC_HEAD_LAYER_H
#define FPAC_HEAD_LAYER_H

#include "head.h"

enum {
    LAYER_MAX_PARTS = 64,
    LAYER_MAX_HEADS = 1 << 16, /* key/value heads of a part */
};

/* So many key/value heads that are alike. */
typedef struct fpa_layer_share {
    int head; /* index in the list that the layer is in */
    int count;
} fpa_layer_share;

typedef struct fpa_layer_spec {
    char *name;   /* as a head's; no head of the list has it */
    char *origin; /* "specs/mine.lua:12" */
    int part_count;
    fpa_layer_share *parts; /* [part_count], in the order of the heads' axis */
} fpa_layer_spec;

/* Every rule that the heads of a layer, each with its count, must obey together; each head obeys its own. Heads have one
 * width of q and k, one of v and o, one dtype, one dtype of states, and positions of one kind; numbers are 1-based. */
fpa_status layer_validate(const char *name, const fpa_head *const *heads, const int *counts, int part_count,
                          fpa_error *error);

void layer_free(fpa_layer_spec *layer);

/* The layer of that name in a list; NULL: there is none. name NULL: the only one. */
const fpa_layer_spec *layer_find(const fpa_head_list *list, const char *name);

#endif
