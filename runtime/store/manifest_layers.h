/* manifest_layers: the part of a manifest with layers, after its entries. */
#ifndef FPAC_RUNTIME_STORE_MANIFEST_LAYERS_H
#define FPAC_RUNTIME_STORE_MANIFEST_LAYERS_H

#include <stdio.h>

#include "lines.h"
#include "manifest.h"

void layers_print(FILE *text, const fpa_manifest *manifest);

/* Read the layers. size: bytes of the whole text, which limits their number. The entries, whose heads layers name,
 * have been read. */
fpa_status layers_parse(fpa_lines *r, size_t size, fpa_manifest *manifest);

#endif
