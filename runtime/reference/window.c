#include "window.h"

#include <math.h>

#include "lift.h"

bool window_has(const fpa_head *head, int64_t t, int64_t j)
{
    return head->window && t - j < head->window;
}

static const double *key_of(const fpa_window_query *query, int64_t j)
{
    const fpa_problem *p = query->problem;
    return p->k + ((query->b * p->length + j) * p->heads + query->head) * head_width(p->head);
}

double window_exponent(const fpa_window_query *query, int64_t j, double *size)
{
    const fpa_head *head = query->problem->head;
    const double *k = key_of(query, j);
    double sum = 0, sizes = 0;
    for (int c = 0; c < head_width(head); c++) {
        sum += query->q[c] * k[c];
        sizes += fabs(query->q[c] * k[c]);
    }
    *size = fabs(head->scale) * sizes;
    return head->scale * sum;
}

float window_exponent_plain(const fpa_window_query *query, int64_t j)
{
    const fpa_head *head = query->problem->head;
    const double *k = key_of(query, j);
    float sum = 0;
    for (int c = 0; c < head_width(head); c++)
        sum += (float)head->scale * (float)query->q[c] * (float)k[c];
    return sum;
}

/* The first key of the window. */
static int64_t first_of(const fpa_window_query *query)
{
    const int64_t first = query->t - query->problem->head->window + 1;
    return first < 0 ? 0 : first;
}

double window_largest(const fpa_window_query *query)
{
    double largest = 0, size;
    for (int64_t j = first_of(query); j <= query->t; j++)
        if (problem_keeps(query->problem, query->b, j))
            largest = fmax(largest, window_exponent(query, j, &size));
    return largest;
}

float window_largest_plain(const fpa_window_query *query)
{
    float largest = 0;
    for (int64_t j = first_of(query); j <= query->t; j++)
        if (problem_keeps(query->problem, query->b, j))
            largest = fmaxf(largest, window_exponent_plain(query, j));
    return largest;
}
