/* backward_edge: what is not finite at one token changes no bit of a gradient that does not depend on that token, and spoils
 * those that do. (C kernels: test_backward_edge.c.) */
#ifndef FPAC_TESTS_EMULATE_BACKWARD_EDGE_H
#define FPAC_TESTS_EMULATE_BACKWARD_EDGE_H

#include "runtime/verify/verify.h"

/* REFUSED with what changes, or is lost. make test: of half of the changes. */
fpa_status backward_edge_check(const fpa_head *head, const fpa_facts *facts, const fpa_module *module,
                               fpa_error *error);

#endif
