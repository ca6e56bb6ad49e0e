/* make_kernel: makes a kernel of a verified module, with its description for callers. */
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "head/lift.h"
#include "runtime/kernel.h"

/* The kind of a run-time matrix, by which a caller initialises it. */
static const char *kind_of(const fpa_head *head, int m)
{
    const fpa_matrix *matrix = &head->matrices[m];
    for (int i = 0; head->lift && i < head->lift->part_count; i++) {
        const fpa_lift_part *part = &head->lift->parts[i];
        if (part->angle == m)
            return "angle";
        if (part->phase == m)
            return "phase";
        if (part->amplitude == m)
            return "amplitude";
    }
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
        return "diagonal";
    return head->lift && lift_has_constants(head->lift, matrix) ? "affine" : "projection";
}

static fpa_status list_weights(fpa_kernel *kernel, fpa_error *error)
{
    const fpa_head *head = kernel->head;
    int count = 0;
    kernel->weight_names = calloc((size_t)head->matrix_count + 1, sizeof *kernel->weight_names);
    kernel->weight_shapes = calloc((size_t)head->matrix_count + 1, sizeof *kernel->weight_shapes);
    kernel->weight_kinds = calloc((size_t)head->matrix_count + 1, sizeof *kernel->weight_kinds);
    if (!kernel->weight_names || !kernel->weight_shapes || !kernel->weight_kinds)
        return fail_memory(error);
    for (int m = 0; m < head->matrix_count; m++) {
        const fpa_matrix *matrix = &head->matrices[m];
        if (matrix->kind == FPA_MATRIX_CONSTANT)
            continue;
        const bool diagonal = matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL;
        kernel->weight_names[count] = matrix->name;
        kernel->weight_kinds[count] = kind_of(head, m);
        kernel->weight_shapes[count++] =
            (fpa_weight_shape){matrix->rows, diagonal ? 0 : matrix->cols, matrix->per_head};
    }
    kernel->description.weight_count = count;
    kernel->description.weight_names = kernel->weight_names;
    kernel->description.weight_shapes = kernel->weight_shapes;
    kernel->description.weight_kinds = kernel->weight_kinds;
    return FPA_OK;
}

static fpa_status describe(fpa_kernel *kernel, bool from_cache, fpa_error *error)
{
    const fpa_head *head = kernel->head;
    const fpa_facts *facts = &kernel->facts;
    kernel->description = (fpa_description){
        .name = kernel->facts.name,
        .target = kernel->facts.target,
        .dtype = dtype_name(head->dtype),
        .state_dtype = dtype_name(head->state_dtype),
        .arithmetic = dtype_name(facts->arithmetic),
        .device = kernel->module.device,
        .d = head_width(head),
        .dv = head->dv,
        .causal = head->causal,
        .gate = head->gate,
        .normalized = head->normalize != FPA_NORMALIZE_NONE,
        .features = facts->features,
        .state_elements = facts->state_elements,
        .chunk = facts->chunk,
        .block = facts->block,
        .crossover = facts->crossover,
        .flop = {facts->flop[FORM_PARALLEL], facts->flop[FORM_CHUNKED], facts->flop[FORM_RECURRENT]},
        .verdict = kernel->verdict.text,
        .from_cache = from_cache,
        .positions = head->lift ? head->lift->positions : 0,
        .key_mask = head->lift && head->lift->key_mask,
        .heads = lift_heads(head),
        .window = head->window,
    };
    return list_weights(kernel, error);
}

fpa_status verify_kernel(fpa_head *head, const fpa_facts *facts, fpa_module *module, const char *stored,
                         bool from_cache, fpa_kernel **kernel, fpa_error *error)
{
    fpa_kernel *made = calloc(1, sizeof *made);
    fpa_status status;
    if (!made) {
        if (module->backend)
            module->backend->unload(module);
        head_free(head);
        return fail_memory(error);
    }
    made->head = head;
    made->facts = *facts;
    made->module = *module;
    if (stored) {
        snprintf(made->verdict.text, sizeof made->verdict.text, "%s", stored);
        status = FPA_OK;
    } else {
        status = verify_module(head, facts, &made->module, &made->verdict, error);
    }
    if (status == FPA_OK)
        status = describe(made, from_cache, error);
    if (status == FPA_OK)
        *kernel = made;
    else
        kernel_free(made);
    return status;
}

void kernel_free(fpa_kernel *kernel)
{
    if (!kernel)
        return;
    if (kernel->module.backend)
        kernel->module.backend->unload(&kernel->module);
    if (kernel->backward.backend)
        kernel->backward.backend->unload(&kernel->backward);
    for (int i = 0; i < PASSES; i++)
        kernel_free(kernel->passes[i]);
    head_free(kernel->head);
    free(kernel->weight_names);
    free(kernel->weight_shapes);
    free(kernel->weight_kinds);
    free(kernel);
}
