#include "launch_passes_rows.h"

#include "launch.h"
#include "launch_contraction.h"
#include "launch_reversed.h"

enum { ELEMENT = 2 };

static cuda_dots leaves_of(const passes *p, const pass_tensor *with, float *dots, void *kept)
{
    const bool wanted = p->launch->d_log_gate;
    return (cuda_dots){.rows = with->at,
                       .stride = {with->stride[0], with->stride[1], with->stride[2]},
                       .dots = wanted ? dots : NULL,
                       .kept = wanted ? kept : NULL,
                       .column_weights = p->weights,
                       .narrows = p->narrows,
                       .apart = wanted && p->apart};
}

/* 1 / n and h of these sequences' queries, which are a pass's queries or keys. */
static void set_numbers(const passes *p, passes_piece these, int numbers_of, cuda_dots *leaves)
{
    if (!p->cuda->geometry.pass_numbers)
        return;
    leaves->numbers = p->back.outputs + 2 * these.first * p->launch->forward.length;
    leaves->numbers_of = numbers_of;
}

/* ---- parts of values ---- */

static int parts_of(const passes *p, fpa_pass pass)
{
    return pass == PASS_ROWS ? p->cuda->geometry.pass_parts : 1;
}

/* Rows of a part: queries and keys of a pass of rows are d_o and v. */
static struct fpa_launch launch_of_part(const passes *p, const struct fpa_launch *f, int part)
{
    const size_t offset = (size_t)part * p->cuda->geometry.pass_part * ELEMENT;
    struct fpa_launch own = *f;
    own.q = (const char *)f->q + offset;
    own.k = (const char *)f->k + offset;
    return own;
}

/* Bytes of states that a part keeps. */
static size_t kept_bytes(const passes *p)
{
    const struct fpa_cuda_module *rows = p->module->passes[PASS_ROWS]->handle;
    return (size_t)(p->back.sequences * p->chunks * rows->geometry.fused_kept) * ELEMENT;
}

/* Dots and states of parts lie one behind the other; o is a sum, of which the first part alone has h. */
static void take_part(const passes *p, const struct fpa_launch *f, int part, cuda_dots *leaves)
{
    const struct fpa_cuda_module *rows = p->module->passes[PASS_ROWS]->handle;
    if (part == 0)
        return;
    leaves->adds = true;
    leaves->numbers_of = leaves->numbers_of == OF_QUERIES ? FACTORS_OF_QUERIES : FACTORS_OF_KEYS;
    if (leaves->dots)
        leaves->dots += part * rows->geometry.column_blocks * p->back.sequences * f->length;
    if (leaves->kept)
        leaves->kept = (char *)leaves->kept + part * kept_bytes(p);
}

/* ---- passes ---- */

fpa_status pass_forward_rows(const passes *p, passes_piece these, const struct fpa_launch *f,
                             const pass_tensor *with, float *dots, void *kept, const void **states,
                             CUstream stream, fpa_error *error)
{
    const fpa_module *module = p->module->passes[PASS_ROWS];
    fpa_status status = FPA_OK;
    fpa_candidate found;
    if (!passes_find(p, PASS_ROWS, f, &found))
        return module->forward(module, p->form, f, NULL, stream, error);
    for (int part = 0; part < parts_of(p, PASS_ROWS) && !status; part++) {
        const struct fpa_launch own = launch_of_part(p, f, part);
        const void *left;
        cuda_dots leaves = leaves_of(p, with, dots, kept);
        set_numbers(p, these, OF_QUERIES, &leaves);
        take_part(p, f, part, &leaves);
        status = cuda_forward_dots(module, FORM_CHUNKED, &own, &found, &leaves, part ? &left : states, stream,
                                   error);
    }
    return status;
}

static fpa_status forward_part(const passes *p, fpa_pass pass, passes_piece these,
                               const struct fpa_launch *launch, int part, const pass_tensor *with,
                               CUstream stream, fpa_error *error)
{
    const bool keeps = p->keeps && pass == p->dots, numbers = p->cuda->geometry.pass_numbers;
    const struct fpa_launch own = launch_of_part(p, launch, part);
    cuda_dots leaves = keeps ? leaves_of(p, with, p->given_dots, p->reversed_kept) : (cuda_dots){0};
    set_numbers(p, these, pass == PASS_ROWS ? OF_KEYS : FACTORS_OF_KEYS, &leaves);
    leaves.narrows = p->narrows;
    take_part(p, launch, part, &leaves);
    return cuda_forward_reversed(p->module->passes[pass], &own,
                                 keeps || numbers || p->narrows || leaves.adds ? &leaves : NULL, stream,
                                 error);
}

fpa_status pass_forward_reversed(passes *p, fpa_pass pass, passes_piece these,
                                 const struct fpa_launch *launch, const pass_tensor *with, CUstream stream,
                                 fpa_error *error)
{
    fpa_status status = FPA_OK;
    p->back.pass_length = p->launch->forward.length;
    if (p->keeps && pass == p->dots) {
        p->gives_ahead = true;
        p->reversed_states = p->reversed_kept;
    }
    for (int part = 0; part < parts_of(p, pass) && !status; part++)
        status = forward_part(p, pass, these, launch, part, with, stream, error);
    return status;
}

fpa_status pass_state_products(const passes *p, passes_piece these, CUstream stream, fpa_error *error)
{
    const fpa_module *module = p->module->passes[p->dots];
    fpa_status status = FPA_OK;
    for (int part = 0; part < parts_of(p, p->dots) && !status; part++) {
        const size_t offset = part ? part * kept_bytes(p) : 0;
        const cuda_met_states met = {.states = (const char *)p->states + offset,
                                     .reversed_states = (const char *)p->reversed_states + offset,
                                     .column_weights = p->weights,
                                     .heads = these.heads,
                                     .value_stride = p->value_stride,
                                     .adds = part > 0};
        status = cuda_state_products(module, p->back.sequences, p->chunks, &met, p->products, stream, error);
    }
    return status;
}
