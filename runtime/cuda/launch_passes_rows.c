/* launch_passes_rows: launches of passes over rows, in forward and reverse order of tokens, one for each part of the values; of kernels
 * that gather and scatter rows; and of the products of states. */
#include "launch_passes_rows.h"

#include "base/round.h"
#include "launch_contraction.h"
#include "launch_reversed.h"

enum { ELEMENT = 2 };

/* ---- gathering and scattering ---- */

void pass_launch(const passes *p, cuda_kernel kernel, int64_t blocks)
{
    cuda_launch(p->queue, kernel, blocks, &p->back, &p->call);
}

/* Launches a kernel whose blocks each take FPA_CUDA_PASS_TOKENS tokens of a sequence. */
static void launch_tokens(const passes *p, cuda_kernel kernel, int64_t sequences, int64_t length)
{
    pass_launch(p, kernel, sequences * divide_up(length, FPA_CUDA_PASS_TOKENS));
}

void pass_begin(passes *p)
{
    const struct fpa_launch *f = &p->launch->forward;
    const int64_t outputs = f->batch * f->query_heads * f->length;
    if (p->cuda->geometry.pass_numbers) /* otherwise the kernel that gathers rows computes 1 / n and h */
        pass_launch(p, CUDA_BACKWARD_OUTPUTS, divide_up(outputs, FPA_CUDA_BACKWARD_OUTPUTS));
    p->back.pass_weights = p->weights;
    if (p->weights)
        pass_launch(p, CUDA_BACKWARD_GATHER, 1);
    p->back.pass_weights = NULL;
    cuda_clear(p->queue, p->zero, p->zero ? sizeof *p->zero : 0, "a log-gate of zero");
}

void pass_gather(passes *p, bool reversed, bool vectors)
{
    p->forth = !reversed && (!vectors || p->given_values);
    p->back.pass_vectors = vectors;
    p->back.pass_reversed = reversed;
    p->back.pass_length = reversed ? p->reached : p->launch->forward.length;
    launch_tokens(p, CUDA_BACKWARD_GATHER, p->back.sequences, p->back.pass_length);
}

void pass_scatter(passes *p, scattered to)
{
    const int64_t group = to == TO_QUERIES ? 1 : p->group;
    p->back.scatters_values = to == TO_VALUES;
    p->back.scatters_queries = to == TO_QUERIES;
    launch_tokens(p, CUDA_BACKWARD_SCATTER, p->back.sequences / group, p->launch->forward.length);
}

/* ---- numbers and states that passes store ---- */

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

/* Sets the addresses of 1 / n and h of these sequences' queries, which are the pass's queries or its keys. */
static void set_numbers(const passes *p, int numbers_of, cuda_dots *leaves)
{
    if (!p->cuda->geometry.pass_numbers)
        return;
    leaves->numbers = p->back.outputs + 2 * p->these.first * p->launch->forward.length;
    leaves->numbers_of = numbers_of;
}

/* ---- parts of values ---- */

static int parts_of(const passes *p, fpa_pass pass)
{
    return pass == PASS_ROWS ? p->cuda->geometry.pass_parts : 1;
}

/* The launch for a part of the values: queries and keys of a pass of rows are d_o and v. */
static struct fpa_launch launch_of_part(const passes *p, const struct fpa_launch *f, int part)
{
    const size_t offset = (size_t)part * p->cuda->geometry.pass_part * ELEMENT;
    struct fpa_launch own = *f;
    own.q = (const char *)f->q + offset;
    own.k = (const char *)f->k + offset;
    return own;
}

/* Bytes of the states that the launch for a part stores. */
static size_t kept_bytes(const passes *p)
{
    const struct fpa_cuda_module *rows = p->module->passes[PASS_ROWS]->handle;
    return (size_t)(p->back.sequences * p->chunks * rows->geometry.fused_kept) * ELEMENT;
}

/* Sets where a part's launch stores dot products and states: after those of earlier parts. Later parts add to the first one's outputs,
 * which alone include h. */
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

void pass_forward_rows(const passes *p, const struct fpa_launch *f, const pass_tensor *with, float *dots,
                       void *kept, const void **states)
{
    const fpa_module *module = p->module->passes[PASS_ROWS];
    fpa_candidate found;
    if (!passes_find(p, PASS_ROWS, f, &found)) {
        cuda_forward_dots(p->queue, module, p->form, f, NULL, NULL, NULL);
        return;
    }
    for (int part = 0; part < parts_of(p, PASS_ROWS); part++) {
        const struct fpa_launch own = launch_of_part(p, f, part);
        const void *left;
        cuda_dots leaves = leaves_of(p, with, dots, kept);
        set_numbers(p, OF_QUERIES, &leaves);
        take_part(p, f, part, &leaves);
        cuda_forward_dots(p->queue, module, FORM_CHUNKED, &own, &found, &leaves, part ? &left : states);
    }
}

static void forward_part(const passes *p, fpa_pass pass, const struct fpa_launch *launch, int part,
                         const pass_tensor *with)
{
    const bool keeps = p->keeps && pass == p->dots, numbers = p->cuda->geometry.pass_numbers;
    const struct fpa_launch own = launch_of_part(p, launch, part);
    cuda_dots leaves = keeps ? leaves_of(p, with, p->given_dots, p->reversed_kept) : (cuda_dots){0};
    set_numbers(p, pass == PASS_ROWS ? OF_KEYS : FACTORS_OF_KEYS, &leaves);
    leaves.narrows = p->narrows;
    take_part(p, launch, part, &leaves);
    cuda_forward_reversed(p->queue, p->module->passes[pass], &own,
                          keeps || numbers || p->narrows || leaves.adds ? &leaves : NULL);
}

void pass_forward_reversed(passes *p, fpa_pass pass, const struct fpa_launch *launch, const pass_tensor *with)
{
    p->back.pass_length = p->launch->forward.length;
    if (p->keeps && pass == p->dots) {
        p->gives_ahead = true;
        p->reversed_states = p->reversed_kept;
    }
    for (int part = 0; part < parts_of(p, pass); part++)
        forward_part(p, pass, launch, part, with);
}

void pass_state_products(const passes *p)
{
    for (int part = 0; part < parts_of(p, p->dots); part++) {
        const size_t offset = part ? part * kept_bytes(p) : 0;
        const cuda_met_states met = {.states = (const char *)p->states + offset,
                                     .reversed_states = (const char *)p->reversed_states + offset,
                                     .column_weights = p->weights,
                                     .heads = p->these.heads,
                                     .value_stride = p->value_stride,
                                     .adds = part > 0};
        cuda_state_products(p->queue, p->module->passes[p->dots], p->back.sequences, p->chunks, &met,
                            p->products);
    }
}
