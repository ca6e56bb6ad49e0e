/* open: a head that is parsed already -> kernel. What fpa_open does with each head of a file. */
#ifndef FPAC_RUNTIME_API_OPEN_H
#define FPAC_RUNTIME_API_OPEN_H

#include "head/head.h"
#include "fpa.h"

/* Generate, compile (or take from the cache), load, verify. Takes ownership of head, also on failure. */
fpa_status open_parsed_head(fpa_head *head, const fpa_options *options, fpa_kernel **kernel,
                            fpa_error *error);

/* The same by one mechanism of the target (gen/gen.h: source_generate_as); NULL: what is fastest. */
fpa_status open_parsed_head_as(fpa_head *head, const char *mechanism, const fpa_options *options,
                               fpa_kernel **kernel, fpa_error *error);

#endif
