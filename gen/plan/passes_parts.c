#include "passes_parts.h"

#include "base/round.h"

enum {
    PIECE = 8,   /* numbers of 16 bytes */
    WIDEST = 256 /* rows of NAME_fused_chunk (cuda.h) */
};

fpa_pass_parts passes_parts(int values, bool line)
{
    const int count = line ? (int)divide_up(values, WIDEST) : 1;
    return (fpa_pass_parts){count, (int)round_up(divide_up(values, count), PIECE)};
}

bool passes_parts_whole(int values)
{
    const fpa_pass_parts parts = passes_parts(values, true);
    return parts.count == 1 || parts.count * parts.width == values;
}
