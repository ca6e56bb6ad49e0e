/* states: a module by hand that gives the state behind keys and nothing else, for gradients that begin with one: no text of the head has to be
 * compiled for it. */
#ifndef FPAC_TESTS_EMULATE_STATES_H
#define FPAC_TESTS_EMULATE_STATES_H

#include "runtime/kernel.h"

/* The head stays the caller's, and has to stay. Any number of modules, in any threads. */
fpa_status states_open(const fpa_head *head, fpa_module *module, fpa_error *error);
void states_close(fpa_module *module);

#endif
