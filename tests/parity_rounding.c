#include "parity_rounding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "runtime/reference/reference.h"

#include "claims.h"
#include "read_array.h"

/* A case as a problem. An initial state of a linear head is what keys e_i with values S_i would
 * leave: these tokens go before the others, and queries e_i behind read the final state. */
typedef struct rounding_case {
    const fpa_head *head;
    fpa_array q, k, v, gate, o, before, after; /* count 0: there is none */
    int64_t virtual;                           /* tokens before, and behind */
    int64_t length;                            /* of all tokens */
    double *qs, *ks, *vs, *gates, *positions, **weights;
    unsigned char *kept;
} rounding_case;

static fpa_array read_case(const parity_files *files, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.npy", files->folder, name);
    return access(path, R_OK) == 0 ? read_array(path) : (fpa_array){0};
}

static double *doubles(int64_t count)
{
    double *x = calloc((size_t)count + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

/* [B, L, H, width] in the head's dtype, with as many tokens of zeros before and behind. */
static double *round_tokens(const rounding_case *c, const fpa_array *x, fpa_dtype dtype)
{
    int64_t token = x->count / (x->shape[0] * x->shape[1]);
    double *padded = doubles(x->shape[0] * c->length * token);
    for (int64_t b = 0; b < x->shape[0]; b++)
        for (int64_t i = 0; i < x->shape[1] * token; i++)
            padded[(b * c->length + c->virtual) * token + i] =
                dtype_round(dtype, x->data[b * x->shape[1] * token + i]);
    return padded;
}

static void add_virtual_tokens(const rounding_case *c)
{
    int64_t heads = c->k.shape[2], d = head_width(c->head), dv = c->head->dv;
    for (int64_t i = 0; i < c->virtual; i++)
        for (int64_t at = 0; at < c->k.shape[0] * heads; at++) {
            int64_t b = at / heads, h = at % heads;
            int64_t first = (b * c->length + i) * heads + h;
            int64_t last = (b * c->length + c->length - c->virtual + i) * heads + h;
            c->ks[first * d + i] = 1;
            c->qs[last * d + i] = 1 / c->head->scale;
            for (int64_t column = 0; column < dv; column++)
                c->vs[first * dv + column] = c->before.data[(at * d + i) * dv + column];
        }
}

static void load_weights(rounding_case *c, const parity_files *files)
{
    c->weights = calloc((size_t)c->head->matrix_count + 1, sizeof *c->weights);
    assert_non_null(c->weights);
    for (int m = 0; m < c->head->matrix_count; m++)
        for (int i = 0; files->weight_names[i]; i++) {
            if (!c->head->matrices[m].name || strcmp(c->head->matrices[m].name, files->weight_names[i]) != 0)
                continue;
            fpa_array array = read_array(files->weights[i]);
            c->weights[m] = doubles(array.count);
            for (int64_t n = 0; n < array.count; n++)
                c->weights[m][n] = array.data[n];
            npy_free(&array);
        }
}

/* Positions, and the keys that are not masked. */
static void load_tokens(rounding_case *c, const parity_files *files)
{
    fpa_array positions = read_case(files, "positions"), mask = {0};
    fpa_error error = {0};
    char path[512];
    c->positions = positions.count ? round_tokens(c, &positions, FPA_F32) : NULL;
    npy_free(&positions);
    snprintf(path, sizeof path, "%s/key_mask.npy", files->folder);
    if (access(path, R_OK))
        return;
    assert_ok(npy_read_mask(path, &mask, &error), &error);
    assert_int_equal(c->virtual, 0);
    c->kept = calloc((size_t)mask.count + 1, 1);
    assert_non_null(c->kept);
    for (int64_t i = 0; i < mask.count; i++)
        c->kept[i] = mask.data[i] == 0;
    npy_free(&mask);
}

static void case_load(rounding_case *c, const fpa_head *head, const parity_files *files)
{
    *c = (rounding_case){.head = head};
    c->q = read_case(files, "q");
    c->k = read_case(files, "k");
    c->v = read_case(files, "v");
    c->o = read_case(files, "o");
    c->gate = read_case(files, "log_g");
    c->before = read_case(files, "initial_state");
    c->after = read_case(files, "final_state");
    if (c->before.count) {
        assert_true(head_degree(head) == 1 && head->term_count == 1 && head->matrix_count == 0);
        assert_int_equal(c->q.shape[2], c->k.shape[2]);
        c->virtual = head->d;
    }
    c->length = c->q.shape[1] + 2 * c->virtual;
    c->qs = round_tokens(c, &c->q, head->dtype);
    c->ks = round_tokens(c, &c->k, head->dtype);
    c->vs = round_tokens(c, &c->v, head->dtype);
    c->gates = c->gate.count ? round_tokens(c, &c->gate, FPA_F32) : NULL;
    add_virtual_tokens(c);
    load_tokens(c, files);
    load_weights(c, files);
}

static void case_free(rounding_case *c)
{
    fpa_array *arrays[] = {&c->q, &c->k, &c->v, &c->gate, &c->o, &c->before, &c->after};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        npy_free(arrays[i]);
    for (int m = 0; m < c->head->matrix_count; m++)
        free(c->weights[m]);
    free(c->weights);
    free(c->qs);
    free(c->ks);
    free(c->vs);
    free(c->gates);
    free(c->positions);
    free(c->kept);
}

static double largest(const fpa_array *x)
{
    double most = 0;
    for (int64_t i = 0; i < x->count; i++)
        most = fmax(most, fabs((double)x->data[i]));
    return most;
}

static double o_error(const rounding_case *c, const float *o)
{
    int64_t tokens = c->q.shape[1], token = c->o.count / (c->o.shape[0] * tokens);
    double most = 0;
    for (int64_t b = 0; b < c->o.shape[0]; b++)
        for (int64_t i = 0; i < tokens * token; i++) {
            double value = dtype_round(c->head->dtype, o[(b * c->length + c->virtual) * token + i]);
            most = fmax(most, fabs(value - c->o.data[b * tokens * token + i]));
        }
    return most / largest(&c->o);
}

static double state_error(const rounding_case *c, const float *o)
{
    int64_t heads = c->k.shape[2], dv = c->head->dv;
    double most = 0;
    for (int64_t at = 0; at < c->k.shape[0] * heads && c->after.count; at++)
        for (int64_t i = 0; i < c->virtual * dv; i++) {
            int64_t token = (at / heads + 1) * c->length - c->virtual + i / dv;
            double value = o[(token * heads + at % heads) * dv + i % dv];
            most = fmax(most, fabs(value - c->after.data[at * c->virtual * dv + i]));
        }
    return c->after.count ? most / largest(&c->after) : 0;
}

parity_errors parity_rounding(const fpa_head *head, const parity_files *files)
{
    rounding_case c;
    parity_errors errors = {0};
    case_load(&c, head, files);
    fpa_problem problem = {
        .head = head,
        .batch = c.q.shape[0],
        .length = c.length,
        .query_heads = c.q.shape[2],
        .heads = c.k.shape[2],
        .q = c.qs,
        .k = c.ks,
        .v = c.vs,
        .log_gate = c.gates,
        .positions = c.positions,
        .key_mask = c.kept,
        .weights = (const double *const *)c.weights,
        .arithmetic = head->dtype,
        .coordinates = head->dtype,
    };
    float *o = calloc((size_t)(c.q.shape[0] * c.length * c.q.shape[2] * head->dv), sizeof *o);
    assert_non_null(o);
    for (int features = 0; features < 2; features++) {
        fpa_error error = {0};
        assert_ok(features ? reference_plain_features(&problem, head->dv, o, &error)
                           : reference_plain(&problem, o, &error),
                  &error);
        errors.o = fmax(errors.o, o_error(&c, o));
        errors.state = fmax(errors.state, state_error(&c, o));
    }
    case_free(&c);
    free(o);
    return errors;
}
