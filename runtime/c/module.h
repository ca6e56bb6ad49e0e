/* module_c: bytes of a shared object -> loaded code. */
#ifndef FPAC_RUNTIME_C_MODULE_H
#define FPAC_RUNTIME_C_MODULE_H

#include "runtime/backend.h"

/* Load from memory; the symbols are NAME_workspace and NAME_forward. Fills *module except its back end. LOAD: the
 * loader refuses the bytes, or a symbol is missing. */
fpa_status module_load(const fpa_object *object, const char *name, fpa_module *module, fpa_error *error);
void module_unload(fpa_module *module);

/* Functions that divide a call of the module into pieces, for threads that also process other modules: NAME_share,
 * NAME_piece and NAME_together of templates/c/share.c.in. All NULL: the module was generated without them. */
typedef struct c_pieces {
    void (*share)(int form, const struct fpa_launch *launch, struct fpa_share *share);
    void (*piece)(int form, const struct fpa_launch *launch, int64_t piece, const struct fpa_member *member);
    void (*together)(int threads, fpa_member_work *work, void *user);
} c_pieces;

const c_pieces *module_pieces(const fpa_module *module);

#endif
