/* together_c: launches of several C modules by one team of threads. */
#ifndef FPAC_RUNTIME_C_TOGETHER_H
#define FPAC_RUNTIME_C_TOGETHER_H

#include "runtime/together.h"

extern const fpa_together together_c;

#endif
