#include "notes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "candidates.h"
#include "command.h"

void note_order(const char *path, const fpa_array *array)
{
    if (array->reversed)
        note("%s: is in Fortran order; it was copied to C order (numpy.ascontiguousarray saves the copy)",
             path);
}

const char *index_text(const fpa_array *array, int64_t at, char text[INDEX_TEXT])
{
    int64_t index[NPY_MAX_AXES];
    size_t used = 0;
    text[0] = '\0';
    for (int a = array->axes - 1; a >= 0; a--) {
        index[a] = at % array->shape[a];
        at /= array->shape[a];
    }
    for (int a = 0; a < array->axes && used < INDEX_TEXT; a++)
        used += (size_t)snprintf(text + used, INDEX_TEXT - used, "%s%" PRId64, a ? ", " : "", index[a]);
    return text;
}

void note_gates(const char *path, const fpa_array *gates)
{
    char index[INDEX_TEXT];
    int64_t first = -1, count = 0;
    for (int64_t i = 0; i < gates->count; i++) {
        if (!(gates->data[i] > 0))
            continue;
        first = first < 0 ? i : first;
        count++;
    }
    if (count)
        note("%s: %" PRId64 " of %" PRId64 " log-gates are positive, the first at [%s]: states grow, and exp "
             "of a sum above 88.7 overflows float32",
             path, count, gates->count, index_text(gates, first, index));
}

void note_overflow(const char *path, const fpa_array *array)
{
    const float most = 65519.996f; /* numbers from 65520 on round to infinity */
    int64_t count = 0;
    for (int64_t i = 0; i < array->count; i++)
        count += isfinite(array->data[i]) && fabsf(array->data[i]) > most;
    if (count && array->item == 2)
        note("%s: %" PRId64 " of %" PRId64
             " numbers are beyond float16's 65504, and infinite there; give q as float32",
             path, count, array->count);
}

/* Notes the mechanism: of a module with candidates, as for GPUs, that of the fastest. */
static void note_mechanism(const fpa_kernel *kernel, const fpa_call_size *size)
{
    const fpa_module *module = &kernel->module;
    const int count = module->candidates ? module->candidates(module, size, NULL, 0) : 0;
    fpa_candidate *list = calloc((size_t)count + 1, sizeof *list), *best = NULL;
    char text[CANDIDATE_TEXT];
    if (list && count)
        module->candidates(module, size, list, count);
    for (int i = 0; list && i < count; i++)
        if (!list[i].refused && (!best || list[i].cost.seconds < best->cost.seconds))
            best = &list[i];
    if (best)
        note("%s: by %s %s; %.2f us predicted, limited by %s", kernel->facts.name, best->mechanism,
             candidate_text(text, best), 1e6 * best->cost.seconds, best->cost.limit);
    free(list);
}

void note_call(const fpa_kernel *kernel, fpa_form asked, const fpa_tensors *tensors)
{
    const int64_t length = tensors->q->shape[1], crossover = kernel->facts.crossover;
    const bool with_state = tensors->state_in || tensors->state_out;
    const fpa_form form = asked == FPA_FORM_AUTO ? fpa_choose_form(kernel, length, with_state) : asked;
    const fpa_call_size size = {.form = (int)form,
                                .batch = tensors->q->shape[0],
                                .length = length,
                                .query_heads = tensors->q->shape[2],
                                .heads = tensors->k->shape[2],
                                .state_in = tensors->state_in != NULL,
                                .state_out = tensors->state_out != NULL,
                                .joined = true};
    if (!*verbose_flag())
        return;
    if (asked != FPA_FORM_AUTO)
        note("%s: %s form, as --form says", kernel->facts.name, form_name((fpa_form_index)form));
    else if (crossover > 0)
        note("%s: %s form, for %" PRId64 " tokens; chunked is cheaper from %" PRId64 " on",
             kernel->facts.name, form_name((fpa_form_index)form), length, crossover);
    else
        note("%s: %s form, for %" PRId64 " tokens; chunked is never cheaper", kernel->facts.name,
             form_name((fpa_form_index)form), length);
    note_mechanism(kernel, &size);
}
