/* layer: heads that one call computes side by side, each for a number of key/value heads; as data. */
#ifndef FPAC_HEAD_LAYER_H
#define FPAC_HEAD_LAYER_H

#include "head.h"

enum {
    LAYER_MAX_PARTS = 64,
    LAYER_MAX_HEADS = 1 << 16, /* the most key/value heads of a part */
};

/* A part: `count` consecutive key/value heads with the same kernel. */
typedef struct fpa_layer_share {
    int head; /* index in the fpa_head_list that contains the layer */
    int count;
} fpa_layer_share;

typedef struct fpa_layer_spec {
    char *name;   /* formed like a head's name, and different from those of all heads in the list */
    char *origin; /* "specs/mine.lua:12" */
    int part_count;
    fpa_layer_share *parts; /* [part_count], in the order of the heads' axis */
} fpa_layer_spec;

/* Checks the rules that the heads of a layer, each with its count, must obey together: the same width of q and k,
 * of v and o, the same dtype, the same dtype of states, and positions of one kind. Each head has been validated by
 * itself. Messages count parts from 1. */
fpa_status layer_validate(const char *name, const fpa_head *const *heads, const int *counts, int part_count,
                          fpa_error *error);

void layer_free(fpa_layer_spec *layer);

/* The layer of that name; name NULL: the only one. Returns NULL if there is none. */
const fpa_layer_spec *layer_find(const fpa_head_list *list, const char *name);

#endif
