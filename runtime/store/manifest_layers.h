/* manifest_layers: the part of a manifest that names layers, behind its entries. */
#ifndef FPAC_RUNTIME_STORE_MANIFEST_LAYERS_H
#define FPAC_RUNTIME_STORE_MANIFEST_LAYERS_H

#include <stdio.h>

#include "lines.h"
#include "manifest.h"

void layers_print(FILE *text, const fpa_manifest *manifest);

/* size: of the whole text, which a number of layers has to fit into. The heads are the entries', which are there. */
fpa_status layers_parse(fpa_lines *r, size_t size, fpa_manifest *manifest);

#endif
