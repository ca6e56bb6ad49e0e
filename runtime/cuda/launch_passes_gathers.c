/* What passes gather, and what they take as it lies. */
#include "launch_passes_gathers.h"

#include "launch_maps.h"

enum { ALIGNMENT = 256 /* of parts of the workspace */ };

bool pass_parts_are_given(const passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    return g->pass_parts == 1 || g->pass_parts * g->pass_part == p->dv;
}

bool pass_describes(const passes *p, const void *base, const int64_t stride[3])
{
    const struct fpa_launch *f = &p->launch->forward;
    const long long its[3] = {stride[0], stride[1], stride[2]};
    return cuda_can_describe(base, its, f->heads, f->length, f->batch);
}

static bool describes_values(const passes *p)
{
    const struct fpa_backward_launch *a = p->launch;
    return pass_describes(p, a->forward.v, a->forward.v_stride) && pass_describes(p, a->d_o, a->d_o_stride);
}

bool pass_can_give_values(const passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    return p->turns && g->pass_formed && !p->back.outputs && !g->pass_widened && p->group == 1 &&
           !g->backward_padded_value && describes_values(p);
}

int pass_row_width(const passes *p, pass_gathered gathered)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int width[] = {[GATHERS_ALL] = g->pass_width + g->pass_kept,
                         [GATHERS_VECTORS] = g->pass_values + g->pass_kept,
                         [GATHERS_NOTHING] = 0};
    return width[gathered];
}

/* Rows that matrices make lie as they are made. */
static bool describes_vectors(const passes *p)
{
    const struct fpa_launch *f = &p->launch->forward;
    const int64_t width = p->cuda->geometry.made_width, head = f->length * width;
    const int64_t stride[3] = {f->heads * head, width, head};
    const void *some = (void *)(uintptr_t)ALIGNMENT;
    return width ? pass_describes(p, some, stride)
                 : pass_describes(p, f->q, f->q_stride) && pass_describes(p, f->k, f->k_stride);
}

pass_gathered pass_least_gathered(const passes *p, bool lie)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    if (!p->contracts || g->kernel[CUDA_BACKWARD_OUTPUTS].threads || (g->gate && g->pass_formed) ||
        g->pass_weighted || g->pass_widened || p->group != 1 || g->backward_padded_value ||
        (lie && !describes_values(p)))
        return GATHERS_ALL;
    if (g->pass_formed)
        return g->pass_kept ? GATHERS_VECTORS : GATHERS_ALL;
    return p->d % 8 == 0 && pass_parts_are_given(p) && (!lie || describes_vectors(p)) ? GATHERS_NOTHING
                                                                                      : GATHERS_ALL;
}
