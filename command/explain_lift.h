/* explain_lift: how a head's coordinates are computed from q and k, as formulas. */
#ifndef FPAC_COMMAND_EXPLAIN_LIFT_H
#define FPAC_COMMAND_EXPLAIN_LIFT_H

#include "head/lift.h"
#include "json.h"

/* Print the lift; nothing for heads without one. */
void explain_lift_print(const fpa_head *head);
void explain_lift_write(fpa_json *json, const fpa_head *head);

#endif
