/* bundle_heads: the heads and layers of a spec's file, or of a bundle's folder by its manifest. */
#ifndef FPAC_COMMAND_BUNDLE_HEADS_H
#define FPAC_COMMAND_BUNDLE_HEADS_H

#include <stdbool.h>

#include "head/layer.h"

/* Whether path is a folder with a manifest, whatever that contains. */
bool is_bundle(const char *path);

/* Load heads and layers. Of a bundle each head once, as written, whatever targets it has. Of a spec, if one of its
 * heads is named `wanted` (NULL: none), possibly that one alone. The caller frees *list (head_list_free). */
fpa_status load_heads(const char *path, const char *wanted, fpa_head_list *list, fpa_error *error);

#endif
