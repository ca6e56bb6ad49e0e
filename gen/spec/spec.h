/* spec: a Lua file -> heads. Every message names the spec's file, line and field.
 *
 * Given: the text of a spec, which runs in a sandbox (script.h) with the vocabulary of prelude.lua. Gives:
 * the heads that it returns, each obeying head_validate. The only folder beside gen/emit that knows Lua. */
#ifndef FPAC_GEN_SPEC_SPEC_H
#define FPAC_GEN_SPEC_SPEC_H

#include "head/head.h"

/* Read all heads of a spec file. Files that the spec names (.npy matrices) are found
 * relative to the spec's own folder. The caller frees *list with head_list_free. */
fpa_status spec_load(const char *path, fpa_head_list *list, fpa_error *error);

/* The same from memory; name stands for the file in messages, folder (may be NULL: no
 * files may be read) is where .npy files are looked for. */
fpa_status spec_load_text(const char *name, const char *folder, const char *text, size_t size,
                          fpa_head_list *list, fpa_error *error);

/* For a caller that wants one head: the list has only the head of that name, or all heads if there is none. Every
 * head of the spec is evaluated and checked all the same; only the numbers of the others' matrices are not
 * computed. */
fpa_status spec_load_head(const char *path, const char *wanted, fpa_head_list *list, fpa_error *error);
fpa_status spec_load_text_head(const char *name, const char *folder, const char *text, size_t size,
                               const char *wanted, fpa_head_list *list, fpa_error *error);

/* The prelude: the vocabulary of specs, as Lua sources that a person can read, in the order in which they run; NULL
 * ends them. */
const char *const *spec_preludes(void);

#endif
