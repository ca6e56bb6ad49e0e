/* explain_lift: how a head's coordinates are made of q and k, in formulas. */
#ifndef FPAC_COMMAND_EXPLAIN_LIFT_H
#define FPAC_COMMAND_EXPLAIN_LIFT_H

#include "head/lift.h"
#include "json.h"

/* Heads without a lift have nothing to say. */
void explain_lift_print(const fpa_head *head);
void explain_lift_write(fpa_json *json, const fpa_head *head);

#endif
