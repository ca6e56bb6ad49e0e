#include "passes_parts.h"

#include "base/round.h"

enum {
    PIECE = 8,   /* elements of 2 bytes in 16 bytes */
    WIDEST = 256 /* elements of a row that NAME_fused_chunk can read (cuda.h) */
};

fpa_pass_parts passes_parts(int values, bool line)
{
    const int count = line ? (int)divide_up(values, WIDEST) : 1;
    return (fpa_pass_parts){count, (int)round_up(divide_up(values, count), PIECE)};
}

bool passes_parts_are_full(int values)
{
    return passes_parts((int)round_up(values + 1, PIECE), true).count > 1 && passes_parts_whole(values);
}

bool passes_parts_have_columns(int d, int values)
{
    return d % PIECE == 0 && values % PIECE == 0 &&
           passes_parts((int)round_up(values + 1, PIECE), true).count == 1;
}

bool passes_parts_whole(int values)
{
    const fpa_pass_parts parts = passes_parts(values, true);
    return parts.count == 1 || parts.count * parts.width == values;
}
