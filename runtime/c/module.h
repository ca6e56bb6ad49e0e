/* module_c: bytes of a shared object -> loaded code. */
#ifndef FPAC_RUNTIME_C_MODULE_H
#define FPAC_RUNTIME_C_MODULE_H

#include "runtime/backend.h"

/* Load from memory; the symbols are name_workspace and name_forward. Fills module except for
 * its backend. LOAD when the loader refuses the bytes or a symbol is not there. */
fpa_status module_load(const fpa_object *object, const char *name, fpa_module *module, fpa_error *error);
void module_unload(fpa_module *module);

#endif
