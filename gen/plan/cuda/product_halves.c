/* product_halves: the numbers of the rows of a half. The plan of product rows and the plan of their features both
 * ask here, so that they agree. */
#include "product_halves.h"

int half_row(const maker *m, const half *h, int r)
{
    return h->count == 1 ? m->plan->dots[h->dot[0]].rows[r] : h->first + r;
}

bool half_split(const maker *m, const half *h, int ordered, int *position, double *weight)
{
    *weight = h->scale;
    for (int l = h->count - 1; l >= 0; l--) {
        const int width = m->plan->dots[h->dot[l]].row_count;
        position[l] = ordered % width;
        ordered /= width;
        if (l + 1 == h->count || h->dot[l] != h->dot[l + 1])
            continue;
        if (m->both_orders)
            continue;
        if (position[l] > position[l + 1])
            return false;
        *weight *= position[l] < position[l + 1] ? 2 : 1;
    }
    return true;
}
