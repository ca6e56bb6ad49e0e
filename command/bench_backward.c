#include "bench_backward.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "command.h"
#include "device.h"
#include "head/lift.h"
#include "machine/gpu.h"
#include "median.h"
#include "operand.h"
#include "runtime/api/open.h"
#include "runtime/kernel.h"

enum { MOST_REPEATS = 1024, Q = 0, K, V, O, DEN, GATE, D_O, D_Q, D_K, D_V, D_GATE, POSITIONS, MASK, ARRAYS };

/* The operands of a forward and a backward call. */
typedef struct passes {
    fpa_operand array[ARRAYS];
    fpa_operand *weights, *d_weights; /* [weight_count] */
    const DLTensor **weight_list;
    DLTensor **d_weight_list;
    fpa_tensors forward;
    fpa_gradient_tensors backward;
    void *workspace[2];
    size_t size[2];
} passes;

static fpa_status make(fpa_operand *operand, int axes, const int64_t *shape, fpa_dtype dtype, float low,
                       float high, fpa_error *error)
{
    fpa_status status = operand_new(axes, shape, operand, error);
    return status ? status : operand_bind_pattern(operand, dtype, 1 + (uint64_t)axes, low, high, error);
}

/* Makes the other operands of a head with a lift: positions, and a mask without masked keys. */
static fpa_status make_tokens(passes *p, const fpa_head *head, const fpa_load *load, fpa_error *error)
{
    const int64_t shape[3] = {load->batch, load->length,
                              head->lift && head->lift->positions ? head->lift->positions : 1};
    fpa_status status = make(&p->array[POSITIONS], 3, shape, FPA_F32, 0, (float)load->length, error);
    if (!status)
        status = make(&p->array[MASK], 2, shape, FPA_F32, 1, 2, error);
    return status ? status : operand_bind_mask(&p->array[MASK], error);
}

/* Makes the operands. Keys and queries are positive, so that no normaliser comes near zero. */
static fpa_status make_arrays(passes *p, const fpa_head *head, const fpa_load *load, fpa_error *error)
{
    const struct {
        int axes, width;
        fpa_dtype dtype;
        float low, high;
    } all[ARRAYS] = {
        [Q] = {4, head_width(head), head->dtype, 0.05f, 0.5f},
        [K] = {4, head_width(head), head->dtype, 0.05f, 0.5f},
        [V] = {4, head->dv, head->dtype, -1, 1},
        [O] = {4, head->dv, head->dtype, 0, 0},
        [DEN] = {3, 1, FPA_F32, 0, 0},
        [GATE] = {3, 1, FPA_F32, -0.05f, 0},
        [D_O] = {4, head->dv, head->dtype, -1, 1},
        [D_Q] = {4, head_width(head), head->dtype, 0, 0},
        [D_K] = {4, head_width(head), head->dtype, 0, 0},
        [D_V] = {4, head->dv, head->dtype, 0, 0},
        [D_GATE] = {3, 1, FPA_F32, 0, 0},
    };
    fpa_status status = FPA_OK;
    for (int i = 0; i < POSITIONS && !status; i++) {
        const int64_t shape[4] = {load->batch, load->length, load->heads, all[i].width};
        status = make(&p->array[i], all[i].axes, shape, all[i].dtype, all[i].low, all[i].high, error);
    }
    return status ? status : make_tokens(p, head, load, error);
}

static fpa_status make_weights(passes *p, const fpa_head *head, const fpa_load *load, fpa_error *error)
{
    const size_t room = (size_t)head->matrix_count + 1;
    fpa_status status = FPA_OK;
    int count = 0;
    p->weights = calloc(room, sizeof *p->weights);
    p->d_weights = calloc(room, sizeof *p->d_weights);
    p->weight_list = calloc(room, sizeof *p->weight_list);
    p->d_weight_list = calloc(room, sizeof *p->d_weight_list);
    if (!p->weights || !p->d_weights || !p->weight_list || !p->d_weight_list)
        return fail_memory(error);
    for (int m = 0; m < head->matrix_count && !status; m++) {
        int64_t shape[3];
        if (head->matrices[m].kind == FPA_MATRIX_CONSTANT)
            continue;
        const int axes = weight_shape(&head->matrices[m], load->heads, shape);
        status = make(&p->weights[count], axes, shape, FPA_F32, -1, 1, error);
        if (!status)
            status = make(&p->d_weights[count], axes, shape, FPA_F32, 0, 0, error);
        p->weight_list[count] = &p->weights[count].tensor;
        p->d_weight_list[count] = &p->d_weights[count].tensor;
        count++;
    }
    return status;
}

static void set_tensors(passes *p, const fpa_head *head)
{
    const bool normalized = head->normalize != FPA_NORMALIZE_NONE;
    fpa_operand *a = p->array;
    const DLTensor *positions = head->lift && head->lift->positions ? &a[POSITIONS].tensor : NULL;
    const DLTensor *mask = head->lift && head->lift->key_mask ? &a[MASK].tensor : NULL;
    p->forward = (fpa_tensors){.q = &a[Q].tensor,
                               .k = &a[K].tensor,
                               .v = &a[V].tensor,
                               .o = &a[O].tensor,
                               .log_gate = head->gate ? &a[GATE].tensor : NULL,
                               .den = normalized ? &a[DEN].tensor : NULL,
                               .positions = positions,
                               .key_mask = mask,
                               .weights = p->weight_list};
    p->backward = (fpa_gradient_tensors){.q = &a[Q].tensor,
                                         .k = &a[K].tensor,
                                         .v = &a[V].tensor,
                                         .o = &a[O].tensor,
                                         .log_gate = p->forward.log_gate,
                                         .den = p->forward.den,
                                         .positions = positions,
                                         .key_mask = mask,
                                         .weights = p->weight_list,
                                         .d_o = &a[D_O].tensor,
                                         .d_q = &a[D_Q].tensor,
                                         .d_k = &a[D_K].tensor,
                                         .d_v = &a[D_V].tensor,
                                         .d_log_gate = head->gate ? &a[D_GATE].tensor : NULL,
                                         .d_weights = p->d_weight_list};
}

static fpa_status make_workspaces(passes *p, const fpa_kernel *kernel, fpa_form form, fpa_error *error)
{
    fpa_status status = fpa_workspace_size(kernel, form, &p->forward, &p->size[0], error);
    if (!status)
        status = fpa_backward_workspace(kernel, form, &p->backward, &p->size[1], error);
    for (int i = 0; i < 2 && !status; i++)
        status = device_allocate(kernel, p->size[i], &p->workspace[i], error);
    return status;
}

/* Copies all operands to the kernel's device. */
static fpa_status place_all(passes *p, const fpa_kernel *kernel, fpa_error *error)
{
    fpa_status status = FPA_OK;
    for (int i = 0; i < ARRAYS && !status; i++)
        status = operand_place(&p->array[i], kernel, error);
    for (int i = 0; i < kernel->description.weight_count && !status; i++) {
        status = operand_place(&p->weights[i], kernel, error);
        if (!status)
            status = operand_place(&p->d_weights[i], kernel, error);
    }
    return status;
}

/* Runs the forward or the backward call `times` times; *seconds of one call, measured when all are finished. */
static fpa_status run(const passes *p, const fpa_kernel *kernel, fpa_form form, int which, int times,
                      double *seconds, fpa_error *error)
{
    const double begin = clock_seconds();
    fpa_status status = device_enter(kernel, error);
    if (status)
        return status;
    for (int i = 0; i < times && !status; i++)
        status = which ? fpa_backward(kernel, form, &p->backward, p->workspace[1], p->size[1], error)
                       : fpa_forward(kernel, form, &p->forward, p->workspace[0], p->size[0], error);
    device_leave(kernel);
    if (!status)
        status = device_finish(kernel, error);
    *seconds = (clock_seconds() - begin) / times;
    return status;
}

/* The number of calls in a measurement: on a GPU so many that waiting for them takes no significant time. */
static int batch_of(const fpa_kernel *kernel, double seconds)
{
    enum { MOST = 64 };
    const double least = 5e-3;
    const int times = (int)(least / (seconds > 0 ? seconds : least)) + 1;
    return !device_is_remote(kernel) ? 1 : times < MOST ? times : MOST;
}

/* Medians of both calls, measured alternately; the first ones are not counted. */
static fpa_status repeat(const passes *p, const fpa_kernel *kernel, const fpa_load *load, double seconds[2],
                         fpa_error *error)
{
    double taken[2][MOST_REPEATS];
    const int most = load->repeats < MOST_REPEATS ? load->repeats : MOST_REPEATS;
    int repeats = 0, times[2] = {1, 1};
    double once = 0;
    fpa_status status = FPA_OK;
    for (int i = 0; i < 4 && !status; i++) {
        status = run(p, kernel, load->form, i % 2, 1, &once, error);
        times[i % 2] = batch_of(kernel, once);
    }
    for (const double start = clock_seconds(); !status && repeats < most; repeats++) {
        if (repeats > 0 && clock_seconds() - start > load->seconds)
            break;
        for (int which = 0; which < 2 && !status; which++)
            status = run(p, kernel, load->form, which, times[which], &taken[which][repeats], error);
    }
    for (int which = 0; which < 2; which++)
        seconds[which] = status || !repeats ? 0 : median_of(taken[which], repeats);
    return status;
}

static void release(passes *p, const fpa_kernel *kernel)
{
    const int weights = kernel ? kernel->description.weight_count : 0;
    for (int i = 0; i < 2 && kernel; i++)
        device_release(kernel, p->workspace[i]);
    for (int i = 0; i < ARRAYS; i++)
        operand_free(&p->array[i]);
    for (int i = 0; i < weights; i++) {
        if (p->weights)
            operand_free(&p->weights[i]);
        if (p->d_weights)
            operand_free(&p->d_weights[i]);
    }
    free(p->weights);
    free(p->d_weights);
    free(p->weight_list);
    free(p->d_weight_list);
}

/* Seconds for the products of both passes at the machine's rate: with the fewest features, or pair by pair. */
static double bound_of(const bench_job *job, const fpa_kernel *kernel)
{
    const fpa_facts *facts = &kernel->facts;
    const double length = (double)job->load->length, dv = kernel->head->dv;
    const double sequences = (double)job->load->batch * (double)job->load->heads;
    const double projections = facts->flop[FORM_RECURRENT] - 4 * (double)facts->features * dv;
    const double features = 14 * fmin((double)facts->features, (double)facts->features_minimum) * dv;
    const double dots = facts->flop[FORM_PARALLEL] - 2 * dv;
    enum { FLOP_A_PRODUCT = 2 * 16 * 8 * 16 };
    const double pairs = (length + 1) / 2 * (4 * dots + 6 * dv);
    double product, copy;
    if (device_is_remote(kernel))
        product = facts->arithmetic == FPA_F32 ? 0 : gpu_of_target(job->target)->sustained * FLOP_A_PRODUCT;
    else
        bound_cpu_rates(job->target, FPA_F32, bench_threads(), &product, &copy);
    return product > 0 ? sequences * length * (fmin(features, pairs) + 4 * projections) / product : 0;
}

void bench_backward_title(const bench_options *options)
{
    printf("%" PRId64 " x %" PRId64 " tokens, %" PRId64 " heads\n", options->batch, options->length,
           options->heads);
    printf("%-28s %-10s %14s %14s %14s %9s\n", "head", "form", "forward ns", "backward ns", "both ns",
           "of bound");
}

static void show(const bench_job *job, const fpa_kernel *kernel, const double seconds[2])
{
    const double tokens =
        (double)job->load->batch * (double)job->load->heads * (double)job->load->length / 1e9;
    const double both = seconds[0] + seconds[1], share = bound_of(job, kernel) / both;
    const char *form = job->load->form == FPA_FORM_AUTO ? "auto" : form_name((fpa_form_index)job->load->form);
    if (!job->options->json) {
        printf("%-28s %-10s %14.1f %14.1f %14.1f %9.2f\n", kernel->facts.name, form, seconds[0] / tokens,
               seconds[1] / tokens, both / tokens, share);
        fflush(stdout);
        return;
    }
    json_object(job->json, NULL);
    json_text(job->json, "head", kernel->facts.name);
    json_text(job->json, "target", kernel->facts.target);
    json_text(job->json, "form", form);
    json_number(job->json, "forward_ns_per_token_and_head", seconds[0] / tokens);
    json_number(job->json, "backward_ns_per_token_and_head", seconds[1] / tokens);
    json_number(job->json, "share_of_bound", share);
    json_close(job->json);
}

fpa_status bench_backward(const bench_job *job, fpa_head *head, fpa_error *error)
{
    fpa_options options = *job->open_options;
    fpa_kernel *kernel = NULL;
    passes p = {0};
    double seconds[2];
    options.backward = 1;
    progress("opening %s", head->name);
    fpa_status status = open_parsed_head(head, &options, &kernel, error);
    if (!status)
        status = make_arrays(&p, kernel->head, job->load, error);
    if (!status)
        status = make_weights(&p, kernel->head, job->load, error);
    if (!status) {
        set_tensors(&p, kernel->head);
        status = place_all(&p, kernel, error);
    }
    if (!status)
        status = make_workspaces(&p, kernel, job->load->form, error);
    if (!status) {
        progress("measuring %s", kernel->facts.name);
        status = repeat(&p, kernel, job->load, seconds, error);
    }
    progress_end();
    if (!status)
        show(job, kernel, seconds);
    release(&p, kernel);
    fpa_close(kernel);
    return status;
}
