/* lift_text: a lift's lines in a head's canonical text. Private to head/. */
#ifndef FPAC_HEAD_LIFT_TEXT_H
#define FPAC_HEAD_LIFT_TEXT_H

#include <stdio.h>

#include "lift.h"
#include "reader.h"

void lift_print(FILE *out, const fpa_lift *lift);
/* Read in->head's lift, if the next line begins one. */
void lift_read(reader *in);

#endif
