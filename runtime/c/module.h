/* module_c: bytes of a shared object -> loaded code. */
#ifndef FPAC_RUNTIME_C_MODULE_H
#define FPAC_RUNTIME_C_MODULE_H

#include "runtime/backend.h"

/* Load from memory; the symbols are name_workspace and name_forward. Fills module except for
 * its backend. LOAD when the loader refuses the bytes or a symbol is not there. */
fpa_status module_load(const fpa_object *object, const char *name, fpa_module *module, fpa_error *error);
void module_unload(fpa_module *module);

/* A call of the module as pieces, for threads that have other modules' to do: NAME_share, NAME_piece and NAME_together of
 * templates/c/share.c.in. NULL, all three: it was generated without. */
typedef struct c_pieces {
    void (*share)(int form, const struct fpa_launch *launch, struct fpa_share *share);
    void (*piece)(int form, const struct fpa_launch *launch, int64_t piece, const struct fpa_member *member);
    void (*together)(int threads, fpa_member_work *work, void *user);
} c_pieces;

const c_pieces *module_pieces(const fpa_module *module);

#endif
