#include "lift_head.h"

#include "base/round.h"

enum { PIECE = 8 }; /* elements of 2 bytes in 16 bytes */

/* A copy of a head with d = width and without its lift. Its data belong to `memory` or to the other head. */
static fpa_head *widened(arena *memory, const fpa_head *from, int width)
{
    fpa_head *head = arena_copy(memory, from, sizeof *from);
    head->memory = (arena){0};
    head->d = width;
    head->scale = 1; /* coordinates include the scale */
    head->lift = NULL;
    return head;
}

void lift_head_make(const fpa_simplified *from, const fpa_head *written, fpa_row_head *made)
{
    fpa_simplified *simple = arena_copy(&made->memory, from, sizeof *from);
    made->width = (int)round_up(from->head->d, PIECE);
    made->scale = 1;
    made->lifted = written;
    made->simple = simple;
    made->unlifted = widened(&made->memory, written, made->width);
    simple->head = widened(&made->memory, from->head, made->width);
}
