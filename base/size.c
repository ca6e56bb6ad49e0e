#include "size.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool size_parse(const char *text, int64_t *bytes)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1},       {"B", 1},        {"K", 0x1p10}, {"KiB", 0x1p10},
                 {"M", 0x1p20}, {"MiB", 0x1p20}, {"G", 0x1p30}, {"GiB", 0x1p30}};
    char *end;
    const double value = strtod(text, &end);
    if (!isdigit((unsigned char)text[0])) /* "inf" and "-1" are no sizes */
        return false;
    while (*end == ' ')
        end++;
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        const double size = value * units[i].factor;
        if (strcmp(end, units[i].name) != 0)
            continue;
        *bytes = size >= 1 && size <= 0x1p50 ? (int64_t)size : 0;
        return *bytes > 0;
    }
    return false;
}
