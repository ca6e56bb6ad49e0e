/* verify_backward: the gradients of a head, generated, compiled and verified without the cache. */
#ifndef FPAC_COMMAND_VERIFY_BACKWARD_H
#define FPAC_COMMAND_VERIFY_BACKWARD_H

#include "runtime/backend.h"
#include "runtime/verify/verify.h"

/* Verify the gradients. forward: the head's own module, which computes states. If they pass, they are stored in
 * the cache. UNSUPPORTED, with what is missing: there are none yet. */
fpa_status verify_gradients(const fpa_head *head, const char *target, const fpa_options *options,
                            const fpa_module *forward, char text[GRADIENT_TEXT], fpa_error *error);

#endif
