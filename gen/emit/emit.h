/* emit: plan -> source text, by the templates.
 *
 * Given: a plan and the head as written. Gives: the text of NAME.c and NAME.h, or of NAME.cu. template.h runs
 * templates, which are Lua; the other files copy the plan into the Lua table that templates read. */
#ifndef FPAC_GEN_EMIT_EMIT_H
#define FPAC_GEN_EMIT_EMIT_H

#include "gen/plan/plan.h"

/* Print NAME.c and NAME.h, or NAME.cu (*header is NULL); malloc'ed texts. The same plan gives the same bytes. */
fpa_status emit_source(const fpa_plan *plan, const fpa_head *written, char **code, char **header,
                       fpa_error *error);

struct fpa_fault;

/* The same with a fault (gen/fault.h); NULL: none. */
fpa_status emit_faulty(const fpa_plan *plan, const fpa_head *written, const struct fpa_fault *fault,
                       char **code, char **header, fpa_error *error);

/* Add the values that a back end computes for its templates, in addition to its plan's fields, to the table on top
 * of the stack. */
struct lua_State;
void push_c(struct lua_State *L, const fpa_plan *plan);
void push_cuda(struct lua_State *L, const fpa_plan *plan);

#endif
