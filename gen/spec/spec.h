/* spec: a Lua file -> heads. Every message names the spec's file, line and field.
 *
 * Given: the text of a spec, which runs in a sandbox (script.h) with the vocabulary of prelude.lua. Gives: the
 * heads that it returns, each valid by head_validate. Besides gen/emit, this is the only folder that uses Lua. */
#ifndef FPAC_GEN_SPEC_SPEC_H
#define FPAC_GEN_SPEC_SPEC_H

#include "head/head.h"

/* Read all heads of a spec file. Paths of .npy files in the spec are relative to the spec's folder. The caller
 * frees *list (head_list_free). INVALID: the spec has an error, with file and line; IO, NO_MEMORY. */
fpa_status spec_load(const char *path, fpa_head_list *list, fpa_error *error);

/* The same from memory. `name` replaces the file in messages; `folder` is where .npy files are searched (NULL:
 * none may be read). */
fpa_status spec_load_text(const char *name, const char *folder, const char *text, size_t size,
                          fpa_head_list *list, fpa_error *error);

/* For a caller that wants one head: the list has only the head of that name, or all heads if there is none. All
 * heads of the spec are still evaluated and checked; only the random matrices of the others are not drawn. */
fpa_status spec_load_head(const char *path, const char *wanted, fpa_head_list *list, fpa_error *error);
fpa_status spec_load_text_head(const char *name, const char *folder, const char *text, size_t size,
                               const char *wanted, fpa_head_list *list, fpa_error *error);

/* The prelude: the vocabulary of specs as readable Lua sources, in the order in which they run; NULL ends the
 * list. */
const char *const *spec_preludes(void);

#endif
