/* gradient: a module of gradients is held against the formula's, and only then belongs to a kernel.
 *
 * Given: the kernel, whose own module makes states and outputs, and a module of its head's gradients. Gives: the same
 * kernel with them, and a verdict in words; else REFUSED. */
#ifndef FPAC_RUNTIME_VERIFY_GRADIENT_H
#define FPAC_RUNTIME_VERIFY_GRADIENT_H

#include "verify.h"

enum { GRADIENT_TEXT = 512 };

/* Both are of the head as written; forward makes states. text: what was found, one line. REFUSED names form, shape,
 * gradient, element and figures. */
fpa_status verify_backward(const fpa_head *head, const fpa_facts *facts, const fpa_module *backward,
                           const fpa_module *forward, char text[GRADIENT_TEXT], fpa_error *error);

/* Take ownership of the module (also on failure) and make it the kernel's. stored: the text of a verdict that holds for
 * these very bytes on this very device, or NULL: then it is verified now. */
fpa_status verify_add_backward(fpa_kernel *kernel, const fpa_facts *facts, fpa_module *module,
                               const char *stored, fpa_error *error);

#endif
