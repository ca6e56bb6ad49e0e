/* layer_fixture: a layer of unlike heads with the operands of a call, and the same call head by head. */
#ifndef FPAC_TESTS_LAYER_FIXTURE_H
#define FPAC_TESTS_LAYER_FIXTURE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "scratch.h"
#include "toy.h"

/* 528 features, so that threads share a head; a gate; a matrix; one head twice. */
#define LAYER_HEADS                                                                                          \
    "local power2 = head { name = 'power2', d = 32, dv = 5, normalize = 'sum', scale = 1 / 4,\n"             \
    "                      terms = power { degree = 2 } }\n"                                                 \
    "local gated = head { name = 'gated', d = 32, dv = 5, gate = true, terms = linear {} }\n"                \
    "local learned = head { name = 'learned', d = 32, dv = 5, normalize = 'max',\n"                          \
    "                       terms = { term { trainable { name = 'w', rows = 3 } } } }\n"
#define LAYER_SPEC                                                                                           \
    LAYER_HEADS "return layer { name = 'mixed', heads = { { head = power2, count = 3 },\n"                   \
                "  { head = gated, count = 2 }, { head = learned, count = 1 } } }\n"
#define GRADIENT_SPEC                                                                                        \
    LAYER_HEADS "return layer { name = 'mixed', heads = { { head = gated, count = 1 },\n"                    \
                "  { head = learned, count = 2 }, { head = gated, count = 1 } } }\n"
#define WINDOW_SPEC                                                                                          \
    "local near = head { name = 'near', d = 8, dv = 5, normalize = 'sum', terms = power { degree = 2 }, "    \
    "window = 10 }\n"                                                                                        \
    "local nearer = head { name = 'nearer', d = 8, dv = 5, normalize = 'sum', terms = taylor { degree = 2 "  \
    "}, window = 4 }\n"                                                                                      \
    "local far = head { name = 'far', d = 8, dv = 5, terms = linear {} }\n"                                  \
    "return layer { name = 'windows', heads = { { head = near, count = 1 }, { head = far, count = 2 },\n"    \
    "  { head = nearer, count = 1 } } }\n"

/* Float32, or what stands for it; its memory is `data`. */
typedef struct layer_operand {
    DLTensor tensor;
    int64_t shape[4], stride[4];
    float *data;
    size_t bytes;
} layer_operand;

enum { LAYER_KERNELS = 4, LAYER_WEIGHTS = 4 };

typedef struct layer_fixture {
    fpa_options options;
    fpa_layer *layer;
    fpa_kernel *kernels[LAYER_KERNELS]; /* of the parts: the test's own, of which the layer is joined */
    layer_operand q, k, v, o, den, gate, state_in, state_out, weight[LAYER_WEIGHTS];
    const DLTensor *weights[LAYER_WEIGHTS];
    fpa_tensors tensors;
    void *workspace;
    size_t workspace_bytes;
    fpa_error error;
} layer_fixture;

/* slots: 0: a state a sequence. */
typedef struct layer_sizes {
    int64_t batch, length, group, slots;
    bool state_in;
} layer_sizes;

typedef struct layer_results {
    float *o, *den, *state;
} layer_results;

int layer_group(void **state), layer_ungroup(void **state);
int layer_make(void **state), layer_remove(void **state);

/* The layer of that spec, joined of kernels that the test has too. NULL: layer `name` NULL is the only one. */
void layer_open(layer_fixture *f, const char *spec, const char *name);

void layer_operands(layer_fixture *f, layer_sizes sizes);
void layer_show_tokens(layer_fixture *f, int64_t first, int64_t end);
/* q, o and den begin `before` tokens later than k. */
void layer_show_queries(layer_fixture *f, int64_t before);
DLTensor layer_index(int32_t *numbers, int64_t *count);

/* Fail the test on an error. */
void layer_forward(layer_fixture *f, fpa_form form);
void layer_step(layer_fixture *f);

layer_results layer_keep(const layer_fixture *f);
void layer_drop(layer_results *results);
void layer_forget(layer_fixture *f); /* outputs are NaN */
void layer_check(const layer_fixture *f, const layer_results *wanted);
void layer_check_near(const layer_fixture *f, const layer_results *wanted, double bound);

/* Part number i of what the layer's call wrote, against its kernel's own call. */
void layer_compare_part(layer_fixture *f, int i, fpa_form form);
void layer_compare_gradients(layer_fixture *f, fpa_form form);

void layer_set_threads(int threads);

#endif
