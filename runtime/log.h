/* log: lines about what is compiled, chosen and cached, for a caller whose options name a log. */
#ifndef FPAC_RUNTIME_LOG_H
#define FPAC_RUNTIME_LOG_H

#include "runtime/api/fpa.h"

void log_line(const fpa_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
