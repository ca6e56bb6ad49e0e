/* embedded: files that are compiled into the library, as NUL-terminated texts. The Makefile writes the arrays with
 * tools/embed.c: gen/spec/prelude.lua is fpa_embedded_prelude_lua. */
#ifndef FPAC_GEN_EMBEDDED_H
#define FPAC_GEN_EMBEDDED_H

#include <stddef.h>

extern const char fpa_embedded_prelude_lua[];
extern const size_t fpa_embedded_prelude_lua_size; /* without the NUL */
extern const char fpa_embedded_sketches_lua[];
extern const size_t fpa_embedded_sketches_lua_size;

extern const char fpa_embedded_launch_h[]; /* abi/launch.h, copied into generated headers */

extern const char fpa_embedded_cuda_call_h[]; /* abi/cuda_call.h, copied into CUDA kernels */

/* templates/<language>/<name>, by file name; the last has name NULL. */
struct fpa_embedded_file {
    const char *name, *text;
};
extern const struct fpa_embedded_file fpa_embedded_templates[];

#endif
