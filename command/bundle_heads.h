/* bundle_heads: the heads and layers of a spec's file, or of a bundle's folder, whose manifest names them. */
#ifndef FPAC_COMMAND_BUNDLE_HEADS_H
#define FPAC_COMMAND_BUNDLE_HEADS_H

#include <stdbool.h>

#include "head/layer.h"

/* A folder with a manifest in it, whatever the manifest says. */
bool is_bundle(const char *path);

/* head_list_free. Of a bundle each head once, as written, for whatever targets it is there. Of a spec, where one of its heads is `wanted` (else
 * NULL), maybe that one alone. */
fpa_status load_heads(const char *path, const char *wanted, fpa_head_list *list, fpa_error *error);

#endif
