/* log: lines about compilations, choices and the cache, for a caller whose options have a log. */
#ifndef FPAC_RUNTIME_LOG_H
#define FPAC_RUNTIME_LOG_H

#include "runtime/api/fpa.h"

void log_line(const fpa_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
