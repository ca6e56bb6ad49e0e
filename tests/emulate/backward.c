#include "backward.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "../claims.h"
#include "../kernels.h"
#include "../scratch.h"
#include "states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each with something that the others lack. */
static const char heads[] =
    "local function some(rows, d, seed) return dense(orthogonal { rows = rows, d = d, seed = seed }) end\n"
    "local function h(name, x)\n"
    "  x.name, x.d, x.dv, x.dtype, x.chunk = name, x.d or 16, x.dv or 16, x.dtype or 'bf16', x.chunk or 64\n"
    "  x.terms = x.terms or tspow { d = 16, degree = 2, block = 8 }\n"
    "  return head(x)\n"
    "end\n"
    "return {\n"
    "  h('plain', {}),\n"
    "  h('normal', { normalize = 'sum', dv = 24 }),\n"
    "  h('gated', { gate = true, scale = 1 / 4 }),\n"
    "  h('gatednorm', { gate = true, normalize = 'one_plus_sum', scale = 1 / 4, state_dtype = 'bf16' }),\n"
    "  h('half', { dtype = 'f16', state_dtype = 'f16', scale = 1 / 4, normalize = 'sum', gate = true, dv = "
    "20 }),\n"
    "  h('linear', { dv = 24, terms = linear {}, gate = true, normalize = 'sum' }),\n"
    "  h('coordinates', { d = 80, dv = 64, chunk = 128, scale = 1 / 5, normalize = 'max', gate = true, terms "
    "= "
    "linear "
    "{} }),\n"
    "  h('cubic', { d = 8, dv = 8, scale = 1 / 2, terms = tspow { d = 8, degree = 3, block = 4 } }),\n"
    "  h('odd', { d = 21, dv = 250, terms = { term { some(9, 21, 1), select(range(3, 10)) }, term { weight = "
    "3 }, "
    "term {} } }),\n"
    "  h('learned', { terms = { term { trainable { name = 'w', rows = 13 }, some(9, 16, 3) }, "
    "term { trainable { name = 'g', diagonal = true }, trainable { name = 'w', rows = 13 }, weight = 3 } } "
    "}),\n"
    "  h('shared', { d = 24, gate = true, normalize = 'sum', terms = { term { trainable { name = 'a', rows = "
    "10 }, "
    "trainable { name = 'b', rows = 9, shared = true } } } }),\n"
    "  h('weighted', { d = 10, dv = 6, terms = term { trainable { name = 'W', rows = 5 },\n"
    "    diagonal { [range(1, 4)] = 1, [range(5, 10)] = sqrt2 } } }),\n"
    "  h('manydots', { dv = 184, scale = 1 / 2, terms = { term { some(4, 16, 1), some(8, 16, 2), some(3, 16, "
    "3) }, "
    "term { some(8, 16, 4), some(4, 16, 5), weight = 3 } } }),\n"
    "  h('halflearned', { d = 20, dtype = 'f16', scale = 1 / 4, gate = true, terms = { term { trainable { "
    "name "
    "= 'a', rows = 7 }, trainable { name = 'b', rows = 12, shared = true } }, linear { weight = 1 / 2 } } "
    "}),\n"
    "  h('coordinates_of_warps', { dv = 32, chunk = 128, normalize = 'sum', gate = true, terms = "
    "linear {} }),\n"
    "  h('line_of_rows', { d = 80, dv = 32, scale = 1 / 5, normalize = 'sum', gate = true, terms = term { "
    "trainable { name = 'a', rows = 32 } } }),\n"
    "  h('passedrows', { d = 40, dv = 24, scale = 1 / 5, gate = true, terms = term { trainable { name = 'a', "
    "rows = 24 } } }),\n"
    "  h('squareofrows', { d = 20, dv = 16, chunk = 128, scale = 1 / 4, terms = term { trainable { name = "
    "'a', "
    "rows = 32 }, trainable { name = 'a', rows = 32 } } }),\n"
    "  h('pairs', { d = 40, dv = 18, chunk = 128, scale = 1 / 4, normalize = 'sum', terms = { term { "
    "trainable { name = 'a', rows = 9 }, some(20, 40, 2) }, term { some(40, 40, 3), some(5, 40, 4), weight = "
    "3 } } }),\n"
    "  h('halfpairs', { d = 72, dv = 40, chunk = 128, scale = 1 / 8, dtype = 'f16', terms = term { some(70, "
    "72, 1), trainable { name = 'a', rows = 10 } } }),\n"
    "  h('widepairs', { d = 208, dv = 64, chunk = 128, scale = 1 / 8, terms = { term { some(44, 208, 3), "
    "trainable { name = 'b', "
    "rows = 2 } }, term { select(range(4, 9)), select(range(11, 202)) } } }),\n"
    "  h('products', { d = 40, dv = 18, chunk = 128, scale = 1 / 4, normalize = 'sum', terms = { term { "
    "trainable { name = 'a', rows = 40 }, some(4, 40, 2), some(5, 40, 5) }, term { some(40, 40, 3), some(5, "
    "40, "
    "4), weight = 3 }, term { trainable { name = 'b', rows = 11 } } } }),\n"
    "  h('halfproducts', { d = 33, dv = 40, chunk = 128, scale = 1 / 4, dtype = 'f16', terms = term { "
    "some(33, "
    "33, 1), some(3, 33, 2), select(range(3, 9)), trainable { name = 'a', rows = 3 } } }),\n"
    "  h('broadpairs', { d = 40, dv = 165, chunk = 128, scale = 1 / 4, gate = true, terms = { term { "
    "trainable { name = 'a', rows = 19 }, some(20, 40, 2) }, term { some(40, 40, 3), some(5, 40, 4), weight "
    "= 3 } } }),\n"
    "  h('broadproducts', { d = 33, dv = 136, chunk = 128, scale = 1 / 4, dtype = 'f16', terms = { term { "
    "some(33, 33, 1), some(3, 33, 2), trainable { name = 'a', rows = 7 } }, term { select(range(9, 20)), "
    "some(3, 33, 2), trainable { name = 'a', rows = 7 } }, term { some(20, 33, 4) } } }),\n"
    "  h('fadingproducts', { d = 40, dv = 36, chunk = 128, scale = 1 / 4, dtype = 'f16', gate = true, "
    "normalize = 'sum', terms = { term { trainable { name = 'a', rows = 40 }, some(4, 40, 2), some(5, 40, 5) "
    "}, term { some(11, 40, 3), weight = 64 } } }),\n"
    "  h('halfsquare', { d = 37, dv = 18, chunk = 128, scale = 1 / 4, dtype = 'f16', terms = power { degree "
    "= "
    "2 } }),\n"
    "  h('widenorm', { d = 16, dv = 256, scale = 1 / 4, normalize = 'sum', gate = true, terms = linear {} "
    "}),\n"
    "  h('numbers', { d = 21, dv = 256, scale = 1 / 4, normalize = 'max', terms = linear { weight = 2 } }),\n"
    "  h('parts', { d = 16, dv = 272, scale = 1 / 4, terms = linear {} }),\n"
    "  h('gatedparts', { d = 21, dv = 272, scale = 1 / 4, gate = true, terms = linear {} }),\n"
    "  h('raggedparts', { d = 20, dv = 259, scale = 1 / 4, gate = true, terms = term { diagonal { [range(1, "
    "9)] = 1, [range(12, 20)] = sqrt2 } } }),\n"
    "  h('halfparts', { d = 32, dv = 260, scale = 1 / 4, gate = true, normalize = 'sum', dtype = 'f16', "
    "terms = linear {} }),\n"
    "  h('normparts', { d = 16, dv = 288, scale = 1 / 4, gate = true, normalize = 'sum', terms = linear {} "
    "}),\n"
    "  h('averages', { d = 80, dv = 48, scale = 1 / 5, normalize = 'sum', terms = linear {} }),\n"
    "  h('broad', { d = 28, dv = 232, scale = 1 / 4, normalize = 'sum', terms = power { degree = 2 } }),\n"
    "  h('wide', { dv = 88, normalize = 'sum', terms = linear {} }),\n"
    "  h('wider', { dv = 160, terms = linear {} }),\n"
    "  h('fp32', { dtype = 'f32', gate = true, dv = 20, normalize = 'sum' }),\n"
    "  h('fp32learned', { dtype = 'f32', dv = 12, terms = { term { trainable { name = 'a', rows = 10 }, "
    "identity() } "
    "} }),\n"
    "  h('line', { d = 64, dv = 64, chunk = 128, scale = 1 / 8, terms = linear {} }),\n"
    "  h('widecells', { d = 12, dv = 85, scale = 1 / 2, normalize = 'sum', gate = true, terms = { power { "
    "degree = 3 }, "
    "term { some(5, 12, 1), diagonal { [range(1, 4)] = 1, [range(5, 12)] = sqrt2 } } } }),\n"
    "  h('parted', { scale = 1 / 2, terms = term { select(range(1, 4)), select(range(5, 16)) } }),\n"
    "  h('leanblocks', { d = 42, dv = 155, gate = true, scale = 1 / 8, terms = linear {} }),\n"
    "  h('manyrows', { d = 248, dv = 8, scale = 1 / 8, normalize = 'sum', gate = true, terms = { term { "
    "diagonal { [range(1, 100)] = 2, [range(101, 248)] = 3 } }, term { some(140, 248, 1), some(2, 248, 2) } "
    "} }),\n"
    "  h('weighedsum', { d = 72, dv = 20, scale = 1 / 8, normalize = 'sum', gate = true, terms = term { "
    "diagonal { [range(1, 40)] = 2, [range(43, 72)] = 3 } } }),\n"
    "  h('rowful', { d = 20, dv = 8, scale = 1 / 4, gate = true, terms = { term { trainable { name = 'a', "
    "rows = 140 }, "
    "some(2, 20, 1) }, term { trainable { name = 'b', rows = 130 }, trainable { name = 'c', rows = 3 } } } "
    "}),\n"
    "  h('fading', { d = 40, dv = 24, chunk = 512, scale = 1 / 5, gate = true, terms = linear {} }),\n"
    "  h('fadinghalf', { d = 21, dv = 72, scale = 1 / 4, dtype = 'f16', gate = true, terms = linear { weight "
    "= 2 } }),\n"
    "  h('fadingsome', { d = 21, dv = 24, scale = 1 / 4, gate = true, terms = term { "
    "diagonal { [range(1, 9)] = 1, [range(12, 20)] = sqrt2 } } }),\n"
    "  h('fadingodd', { d = 45, dv = 37, scale = 1 / 5, gate = true, terms = term { "
    "diagonal { [range(1, 20)] = 1, [range(23, 44)] = sqrt2 } } }),\n"
    "  h('weighed', { d = 21, dv = 24, scale = 1 / 4, terms = term { diagonal { [range(1, 9)] = 1, "
    "[range(12, 20)] "
    "= sqrt2 } } }),\n"
    "  h('turned', { d = 70, dv = 85, scale = 1 / 4, terms = linear { weight = 2 } }),\n"
    "  h('fadingsum', { d = 20, dv = 14, scale = 1 / 4, gate = true, terms = { linear {}, power { degree = 2 "
    "} } }),\n"
    "  h('cubeofpairs', { d = 23, dv = 24, scale = 1 / 4, terms = power { degree = 3 } }),\n"
    "  h('halfcube', { d = 23, dv = 135, scale = 1 / 4, dtype = 'f16', normalize = 'sum', terms = power { "
    "degree = 3 } }),\n"
    "  h('cubicsum', { d = 20, dv = 36, scale = 1 / 4, gate = true, normalize = 'sum', terms = { term { "
    "weight = 3 }, linear {}, power { degree = 4, weight = 1 / 2 } } }),\n"
    "  h('fadingpower', { d = 11, dv = 16, scale = 1 / 4, gate = true, normalize = 'sum', terms = "
    "inhomogeneous { degree = 4, constant = 1 } }),\n"
    "  h('fadingcube', { dv = 14, scale = 1 / 4, gate = true, terms = { linear {}, power { degree = 3 } } "
    "}),\n"
    "  h('fadingtaylor', { d = 36, dv = 19, scale = 1 / 4, gate = true, normalize = 'sum', terms = { term { "
    "weight = 3 }, "
    "linear {}, power { degree = 2, weight = 1 / 2 } } }),\n"
    "  h('fewsums', { d = 35, dv = 20, chunk = 128, scale = 1 / 4, normalize = 'sum', terms = inhomogeneous "
    "{ degree = 2, constant = 1 } }),\n"
    "  h('sums', { d = 43, dv = 36, chunk = 128, scale = 1 / 4, normalize = 'one_plus_sum', terms = { linear "
    "{ weight = "
    "-1 }, power { degree = 2 } } }),\n"
    "  h('features', { d = 29, dv = 40, scale = 1 / 4, terms = { term { select(range(1, 9)), trainable { "
    "name "
    "= 'a', rows = 2 }, some(3, 29, 1) }, term { trainable { name = 'b', rows = 3 }, diagonal { [range(1, "
    "5)] = 1, [range(6, 24)] = sqrt2 }, weight = 3 } } }),\n"
    "  h('fadingfeatures', { d = 24, dv = 134, scale = 1 / 2, gate = true, terms = term { trainable { name = "
    "'a', rows = 2 }, some(2, 24, 1), some(2, 24, 2), select(range(2, 14)), weight = 1 / 2 } }),\n"
    "  h('halffeatures', { d = 21, dv = 90, scale = 1 / 4, dtype = 'f16', terms = { term { some(6, 21, 1), "
    "some(5, 21, 2), weight = 1 / 8 }, term { select(range(1, 16)) } } }),\n"
    "  h('raggedfeatures', { d = 23, dv = 36, scale = 1 / 4, terms = term { trainable { name = 'a', rows = 6 "
    "}, trainable { name = 'b', rows = 5 } } }),\n"
    "  h('sumoffeatures', { d = 20, dv = 36, scale = 1 / 4, gate = true, normalize = 'sum', terms = { term { "
    "trainable { name = 'a', rows = 4 }, trainable { name = 'a', rows = 4 } }, term { some(5, 20, 1), "
    "some(7, 20, "
    "2) }, term { weight = 2 } } }),\n"
    "  h('halflines', { d = 40, dv = 28, dtype = 'f16', gate = true, normalize = 'sum', scale = 1 / 5, terms "
    "= "
    "linear {} }),\n"
    "  h('ragged', { d = 24, dv = 20, dtype = 'f16', scale = 1 / 4, terms = linear {} }),\n"
    "  h('lines', { d = 24, dv = 36, scale = 1 / 4, normalize = 'sum', terms = linear {} }),\n"
    "  h('square', { scale = 1 / 4, normalize = 'max' }),\n"
    "  h('squares', { d = 36, dv = 24, chunk = 128, scale = 1 / 4, normalize = 'sum', terms = power { degree "
    "= 2 } }),\n"
    "  h('broadsquare', { d = 37, dv = 152, chunk = 128, scale = 1 / 4, normalize = 'sum', terms = power { "
    "degree = 2 "
    "} }),\n"
    "  h('broadfading', { d = 28, dv = 203, chunk = 128, scale = 1 / 4, gate = true, terms = power { degree "
    "= 2 } "
    "}),\n"
    "  h('powers', { d = 32, dv = 16, chunk = 384, scale = 1 / 4, terms = power { degree = 2 } }),\n"
    "  h('taylor', { d = 20, dv = 14, scale = 1 / 4, normalize = 'one_plus_sum', terms = { term {}, "
    "linear {}, power { degree = 2, weight = 1 / 2 } } }),\n"
    "  h('graded', { dtype = 'f32', d = 8, dv = 8, chunk = 256, gate = true, normalize = 'one_plus_sum', "
    "terms = term { trainable { name = 'W', rows = 4, shared = true }, identity() } }),\n"
    "  h('tf32', { dtype = 'f32', products = 'tf32x3', gate = true, dv = 20, normalize = 'sum' }),\n"
    "  h('oddmoved', { d = 109, dv = 8, scale = 1 / 8, terms = { term { trainable { name = 'a', rows = 40 }, "
    "trainable "
    "{ name = 'b', rows = 16 } } } }),\n"
    "  h('halfnumbers', { d = 32, dv = 72, dtype = 'f16', gate = true, normalize = 'sum', scale = 1 / 5, "
    "terms = linear {} }),\n"
    "  h('halfopen', { d = 24, dv = 64, dtype = 'f16', normalize = 'max', scale = 1 / 4, terms = linear { "
    "weight = 2 } }),\n"
    "  h('halfclosed', { d = 40, dv = 72, dtype = 'f16', gate = true, normalize = 'max', scale = 1 / 8, "
    "terms = "
    "linear {} }),\n"
    "  h('fadingsums', { d = 24, dv = 40, scale = 1 / 4, gate = true, terms = taylor { degree = 2 } }),\n"
    "  h('elu', { d = 32, dv = 32, chunk = 128, normalize = 'sum', terms = linear { map = elu_plus_one } "
    "}),\n"
    "  h('hedgehog', { d = 40, dv = 24, scale = 1 / 2, normalize = 'sum', terms = {\n"
    "    term { coordinates { trainable { name = 'w', rows = 21 }, map = exp } }, term { coordinates { "
    "trainable "
    "{ name = 'w', rows = 21 }, map_q = silu, map_k = softplus, inner = -1 } } } }),\n"
    "  h('waves', { d = 13, dv = 20, positions = 1, key_mask = true, normalize = { 'sum', eps = 1e-6 }, "
    "terms "
    "= fourier { map = softplus, form = 'one_plus' } }),\n"
    "  h('random', { d = 24, dv = 16, dtype = 'f16', normalize = 'sum', gate = true, terms = favor { d = 24, "
    "size = 40, seed = 2, gamma = 1 / 4 } }),\n"
    "  h('fp32sketch', { d = 9, dv = 6, dtype = 'f32', scale = 1 / 2, terms = tensorsketch { d = 9, degree = "
    "3, size = 15, seed = 2, constant = 1 / 2 } }),\n"
    "  h('sketches', { d = 9, dv = 6, terms = tensorsketch { d = 9, degree = 3, size = 15, seed = 2, "
    "constant "
    "= 1 / 2, gamma = 1 / 4, heads = 2 } }),\n"
    "  h('factors', { d = 72, dv = 16, scale = 1 / 4, terms = { term { coordinates { trainable { name = 'a', "
    "rows = 72 }, trainable { name = 'g', diagonal = true } } }, term { coordinates { select { 7, 1, 3 }, "
    "map "
    "= relu } } } }),\n"
    "  h('swung', { d = 16, dv = 16, positions = 1, scale = 1 / 4, terms = term { identity(), coordinates { "
    "select { 1, 2, 3 }, map = one, angle = 'a', phase = 'b', amplitude = 'c' } } }),\n"
    "  h('waves_of_warps', { d = 13, dv = 20, positions = 1, key_mask = true, normalize = { 'sum', eps = "
    "1e-6 }, "
    "terms = fourier { map = softplus, form = 'one_plus' } }),\n"
    "  h('factors_of_warps', { d = 72, dv = 16, scale = 1 / 4, terms = { term { coordinates { trainable { "
    "name = 'a', "
    "rows = 72 }, trainable { name = 'g', diagonal = true } } }, term { coordinates { select { 7, 1, 3 }, "
    "map = relu } } } }),\n"
    "}\n";

/* ---- the fixture ---- */

/* Heads of warpgroups are products of warps elsewhere. */
const char *backward_target(const fpa_head *head)
{
    return strstr(head->name, "_of_warps") ? "cuda:sm_90" : "cuda:sm_90a";
}

static backward_fixture fixture;

/* States before the tokens of the heads that jobs have, unless they are here. */
static void load_heads(int count, const backward_job *jobs)
{
    backward_fixture *f = &fixture;
    fpa_error error;
    for (int i = 0; i < count; i++)
        if (!f->states[jobs[i].head].backend &&
            states_open(f->list.heads[jobs[i].head], &f->states[jobs[i].head], &error))
            fail_msg("%s: %s", error.where, error.message);
}

int backward_setup(void **state)
{
    backward_fixture *f = &fixture;
    fpa_error error;
    fpa_status status = FPA_OK;
    *state = f;
    f->ready = compiled_possible();
    if (!f->ready)
        print_message("g++ or tests/emulate is not here: the emitted kernels are not run\n");
    scratch_make(f->folder);
    if (f->ready)
        status = compiled_prepare(f->folder, &error);
    if (!status)
        status = spec_load_text("backward.lua", NULL, heads, sizeof heads - 1, &f->list, &error);
    if (status)
        print_error("%s: %s\n", error.where, error.message);
    else if (f->list.count > BACKWARD_MOST_HEADS)
        print_error("there is room for %d heads, not %d\n", BACKWARD_MOST_HEADS, f->list.count);
    return status || f->list.count > BACKWARD_MOST_HEADS ? -1 : 0;
}

int backward_teardown(void **state)
{
    backward_fixture *f = *state;
    for (int i = 0; i < f->list.count; i++) {
        states_close(&f->states[i]);
        source_free(&f->source[i]);
    }
    head_list_free(&f->list);
    scratch_remove(f->folder);
    return 0;
}

int backward_head_named(const backward_fixture *f, const char *name)
{
    for (int i = 0; i < f->list.count; i++)
        if (strcmp(f->list.heads[i]->name, name) == 0)
            return i;
    fail_msg("tests/emulate/backward.c has no head %s", name);
    return -1;
}

const fpa_source *backward_source(const backward_fixture *f, int head)
{
    fpa_source *source = &fixture.source[head];
    const fpa_head *its = f->list.heads[head];
    fpa_error error;
    if (!source->code && source_generate_backward(its, backward_target(its), source, &error))
        fail_msg("%s: %s", error.where, error.message);
    return source;
}

/* ---- jobs ---- */

/* Forward passes that are gradients, as emulated modules of their own. */
typedef struct emulated_passes {
    emulated_module module[PASSES];
    fpa_source source[PASSES];
    fpa_gpu gpu; /* whose memory is slow: tails of chunks are long */
} emulated_passes;

/* alone: the pass is the head's own forward pass, as its module has it (runtime/api/open_gradients.c). code: NULL: what is emitted. */
static fpa_status open_pass(emulated_passes *p, int i, const fpa_head *head, bool alone, const char *code,
                            const char *folder, fpa_error *error)
{
    char own[160];
    struct fpa_cuda_module *cuda = &p->module[i].cuda;
    snprintf(own, sizeof own, "%s/%s%d", folder, head->name, i);
    mkdir(own, 0700);
    const char *name = p->source[i].facts.name;
    fpa_status status = alone ? source_generate(head, "cuda:sm_90a", &p->source[i], error)
                              : source_generate_pass(head, "cuda:sm_90a", (fpa_pass)i, &p->source[i], error);
    char *whole =
        status ? NULL : kernels_without(p->source[i].code, name, "decode"); /* passes have all tokens */
    if (!status && !whole)
        status = fail_memory(error);
    if (!status)
        status = emulated_open(&p->module[i], code ? code : whole, code ? p->source[i].code : NULL, name, own,
                               error);
    free(whole);
    p->gpu = *gpu_find("h200");
    p->gpu.memory /= 8;
    cuda->room.gpu = &p->gpu;
    cuda->room.cluster_counts[2] = cuda->room.cluster_counts[3] = 8;
    return status;
}

static fpa_status open_passes(emulated_passes *p, const backward_job *j, fpa_module *module,
                              const char *folder, fpa_error *error)
{
    const fpa_head *head = j->fixture->list.heads[j->head];
    fpa_passes its = {0};
    fpa_status status = source_passes(head, "cuda:sm_90a", &its, error);
    if (!status && !its.head[PASS_VALUES] && !its.own[PASS_VALUES])
        status = (fail)(error, FPA_INVALID, head->name, "no gradient of it is a forward pass");
    for (int i = 0; i < PASSES && !status; i++) {
        if (!its.head[i] && !its.own[i]) /* the other one's kernels contract */
            continue;
        status = open_pass(p, i, its.own[i] ? head : its.head[i], its.own[i], j->pass[i], folder, error);
        module->passes[i] = &p->module[i].module;
    }
    for (int i = 0; i < PASSES; i++)
        head_free(its.head[i]);
    return status;
}

static void close_passes(emulated_passes *p)
{
    for (int i = 0; i < PASSES; i++) {
        source_free(&p->source[i]);
        emulated_close(&p->module[i]);
    }
}

/* Of the rows of runtime/verify/gradient.c. Either half has calls of a few tokens, both edges of a chunk, calls that want some of the
 * gradients, a state between two calls, and sequences of different lengths; the second one what fades at once and for long. */
enum {
    FIRST_HALF = 1 << 0 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 8 | 1 << 11,
    SECOND_HALF = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7 | 1 << 9 | 1 << 10
};
_Static_assert((FIRST_HALF ^ SECOND_HALF) == (1 << GRADIENT_SHAPES) - 1,
               "each shape is in one of the halves");

static unsigned shapes_of(const backward_job *j)
{
    static const unsigned halves[] = {0, FIRST_HALF, SECOND_HALF};
    return dear_tests() || getenv("FPA_TEST_HEAD") ? 0 : halves[j->half];
}

static void run_job(int index, void *argument)
{
    emulated_passes passes = {0};
    backward_job *j = &((backward_job *)argument)[index];
    const backward_fixture *f = j->fixture;
    const fpa_facts *facts = &f->source[j->head].facts;
    const bool all = dear_tests() || j->base || j->pass[PASS_ROWS] || j->pass[PASS_VALUES];
    const int64_t longest = j->longest ? j->longest : (all ? 3 : 2) * facts->chunk + 7;
    emulated_module emulated;
    char folder[96];
    const double begin = clock_seconds();
    snprintf(folder, sizeof folder, "%s/%d", f->folder, j->number);
    mkdir(folder, 0700);
    j->status = emulated_open(&emulated, j->code, j->base, facts->name, folder, &j->error);
    emulated.late = j->late ? j->late : j->number % 2 ? LATE_COPIES : LATE_PRODUCTS;
    if (j->multiprocessors)
        emulated.cuda.room.multiprocessors = j->multiprocessors;
    if (j->pass_limit)
        emulated.cuda.pass_limit = j->pass_limit;
    if (!j->status && j->passes)
        j->status = open_passes(&passes, j, &emulated.module, folder, &j->error);
    for (int i = 0; i < PASSES; i++) {
        passes.module[i].late = emulated.late;
        if (j->multiprocessors)
            passes.module[i].cuda.room.multiprocessors = j->multiprocessors;
    }
    if (!j->status)
        j->status = verify_backward_up_to(f->list.heads[j->head], facts, &emulated.module,
                                          &f->states[j->head], longest, shapes_of(j), j->text, &j->error);
    if (!j->status && j->check)
        j->status = j->check(f->list.heads[j->head], facts, &emulated.module, &j->error);
    j->seconds = clock_seconds() - begin;
    j->launched = emulated.launched;
    j->passed = passes.module[PASS_ROWS].launched | passes.module[PASS_VALUES].launched;
    close_passes(&passes);
    emulated_close(&emulated);
}

void backward_run(int count, backward_job *jobs)
{
    load_heads(count, jobs);
    parallel_run(count, run_job, jobs);
}

void backward_report(const backward_job *j, const char *what)
{
    print_message("%-11s %-44s %4.1f s: %s\n", j->fixture->list.heads[j->head]->name, what, j->seconds,
                  j->status ? j->error.message : j->text);
}
