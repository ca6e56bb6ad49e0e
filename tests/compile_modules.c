#include "compile_modules.h"

#include "claims.h"
#include "dear.h"
#include "share.h"
#include "base/clock.h"
#include "runtime/cuda/nvrtc.h"

#include <stdio.h>
#include <string.h>

/* One of each kind: plain, gated, normalised, dense, trainable (whole and diagonal), stored in bf16 and
 * f16, of degree 3 and 4, odd widths. */
const char *const module_kinds[MODULE_KINDS] = {
    "linear_d24_v48",     "gated_power2_d64",      "inhomogeneous2_d48", "dense_16x32_d64", "trainable_dense",
    "trainable_diagonal", "tspow2_d32_bf16_state", "tspow2_d32_f16",     "mixed_3x7x5",     "tspow4_d8",
};

/* Each is one of the modules that are added below; together nearly the least time in which what
 * test_cuda_sources.c asks of them can be compiled. */
const module_name module_fixed[MODULE_FIXED] = {
    {"dense_16x32_d64", "bf16", "cuda:sm_90a"}, /* fused_chunk of packed rows */
    {"half", "f16", "cuda:sm_90a"},             /* a cluster that takes turns */
    {"gated_power2_d64", "bf16", "cuda:sm_90a"},
    {"narrow", "bf16", "cuda:sm_90a"}, /* a square, whose states are contracted for gradients */
    {"trainable_dense", "f16", "cuda:sm_90a"},
    {"inhomogeneous2_d48", "f16", "cuda:sm_90a"}, /* a second walk */
    {"ones", "f16", "cuda:sm_90a"},
    {"weighted", "bf16", "cuda:sm_90a"},  /* rows as they are, in packed vectors, */
    {"three", "bf16", "cuda:sm_90a"},     /* and products of rows, */
    {"tspow4_d8", "bf16", "cuda:sm_90a"}, /* with weights that are no powers of two */
    {"linear_d64_bf16", "bf16", "cuda:sm_90a"},
    {"some", "bf16", "cuda:sm_90a"},        /* rows as they lie, no gate */
    {"lift_linear", "bf16", "cuda:sm_90a"}, /* one pass on coordinates, normalised */
    {"linear_d64_bf16", "bf16", "cuda:sm_90"},
    {"linear_d24_v48", "bf16", "cuda:sm_90"},
    {"mixed_3x7x5", "bf16", "cuda:sm_90"},
    {"diagonal_factors", "f32", "cuda:sm_90"},
    {"tspow2_d64_tf32x3", "f32", "cuda:sm_90"},
    {"gated_linear_d32", "f32", "cuda:sm_80"}, /* portable, in one pass */
    {"wide_bf16", "bf16", "cuda:sm_86"},
    {"thin", "f32", "cuda:sm_86"},
    {"tspow2_d32_f16", "f16", "cuda:sm_89"},
    {"dense_16x32_d64", "f16", "cuda:sm_90"},    /* rows that a kernel of their own packs, of matrices, */
    {"trainable_diagonal", "f16", "cuda:sm_90"}, /* of diagonals */
    {"tspow4_d8", "f32", "cuda:sm_100"},
    {"trainable_diagonal", "f32", "cuda:sm_103"},
    {"tspow2_d32_bf16_state", "bf16", "cuda:sm_120"},
    {"lift_packed", "bf16", "cuda:sm_90a"}, /* packed rows of coordinates that are made there */
    {"lift_all", "bf16", "cuda:sm_90a"},    /* coordinates of every kind */
    {"lift_all", "f16", "cuda:sm_80"},
    {"lift_all", "f32", "cuda:sm_80"},
    {"lift_window", "bf16", "cuda:sm_90a"}, /* a window, beside coordinates, masked */
    {"lift_window", "f16", "cuda:sm_80"},
};

static const char widths[] =
    "return {\n"
    "  head { name = 'wide', d = 256, dv = 256, terms = linear {} },\n"
    "  head { name = 'wide_bf16', d = 256, dv = 256, dtype = 'bf16', gate = true, normalize = 'sum',\n"
    "         terms = linear {} },\n"
    "  head { name = 'thin', d = 1, dv = 1, terms = power { degree = 2 } },\n"
    "}";

static const char states[] =
    "local function rows(seed) return dense(orthogonal { rows = 8, d = 64, seed = seed }) end\n"
    "return {\n"
    "  head { name = 'three', d = 64, dv = 64, dtype = 'bf16',\n"
    "         terms = term { rows(1), rows(2), rows(3) } },\n"
    "  head { name = 'ones', d = 16, dv = 64, dtype = 'f16', normalize = 'sum',\n"
    "         terms = taylor { degree = 2 } },\n"
    "  head { name = 'all', d = 256, dv = 64, dtype = 'bf16', terms = linear {} },\n"
    "  head { name = 'some', d = 160, dv = 64, dtype = 'bf16', normalize = 'sum', terms = linear {} },\n"
    "  head { name = 'narrow', d = 64, dv = 32, dtype = 'bf16', terms = power { degree = 2 } },\n"
    "  head { name = 'wide', d = 96, dv = 96, dtype = 'f16', terms = power { degree = 2 } },\n"
    "  head { name = 'weighted', d = 32, dv = 80, dtype = 'bf16', gate = true, scale = 1 / 8,\n"
    "         terms = term { diagonal { [range(1, 8)] = 1, [range(9, 20)] = 9 / 8, [range(21, 24)] = 3 } } "
    "},\n"
    "  head { name = 'half', d = 128, dv = 128, dtype = 'f16', gate = true, terms = linear {} },\n"
    "}";

static const char lifts[] =
    "local function some(rows, seed) return dense(orthogonal { rows = rows, d = 24, seed = seed }) end\n"
    "return {\n"
    "  head { name = 'lift_all', d = 24, dv = 32, positions = 2, key_mask = true, scale = 1 / 2, terms = {\n"
    "    term { coordinates { identity(), angle = 'a', phase = 'b', amplitude = 'c', map_q = softplus, map_k "
    "= "
    "exp } },\n"
    "    term { coordinates { some(16, 1), map = exp, square = 1 / 2, shift = 1 / 8, gain = 1 / 4 },\n"
    "           select(range(1, 5)):map(silu) },\n"
    "    term { coordinates { { some(8, 2), some(8, 3) }, { some(8, 4), some(8, 5) }, gain_k = 2 } },\n"
    "    term { coordinates { trainable { name = 'w', rows = 9, bias = true }, trainable { name = 'u', rows "
    "= 9 "
    "},\n"
    "           map_q = relu, map_k = elu_plus_one } } } },\n"
    "  head { name = 'lift_window', d = 24, dv = 32, key_mask = true, window = 40, normalize = 'max', scale "
    "= 1 / 2,\n"
    "    terms = term { coordinates { some(16, 1), map = exp, inner = 1 / 2 } } },\n"
    "  head { name = 'lift_packed', d = 64, dv = 64, normalize = 'one_plus_sum', scale = 1 / 8,\n"
    "    terms = polysketch { d = 64, rows = 16, seed = 1 } },\n"
    "  head { name = 'lift_linear', d = 64, dv = 64, normalize = 'sum', terms = term { "
    "identity():map(elu_plus_one) } },\n"
    "}";

static void load_heads(const char *text, fpa_head_list *list)
{
    fpa_error error;
    assert_ok(spec_load_text("wide.lua", NULL, text, strlen(text), list, &error), &error);
}

/* Loaded again, because the types are set in the heads. */
static void load_narrow(compile_fixture *f)
{
    static const fpa_dtype dtypes[] = {FPA_BF16, FPA_F16};
    for (int n = 0; n < 2; n++) {
        shipped_load(&f->narrow[n]);
        for (int i = 0; i < f->narrow[n].count; i++) {
            f->narrow[n].item[i].head->dtype = dtypes[n];
            f->narrow[n].item[i].head->products = FPA_PRODUCTS_PLAIN;
        }
    }
}

static void load_lifts(compile_fixture *f)
{
    for (int t = 0; t < FPA_DTYPES; t++) {
        load_heads(lifts, &f->lifts[t]);
        for (int i = 0; i < f->lifts[t].count; i++)
            f->lifts[t].heads[i]->dtype = (fpa_dtype)t;
    }
}

const fpa_head *module_head(const shipped_heads *heads, const char *name)
{
    for (int i = 0; i < heads->count; i++)
        if (strcmp(heads->item[i].head->name, name) == 0)
            return heads->item[i].head;
    fail_msg("specs/ has no head %s", name);
    return NULL;
}

bool is_module(const compile_job *job, const module_name *name)
{
    return strcmp(name->head, job->head->name) == 0 && strcmp(name->dtype, dtype_name(job->dtype)) == 0 &&
           strcmp(name->target, job->target->name) == 0;
}

bool is_fixed_module(const compile_job *job)
{
    for (int i = 0; i < MODULE_FIXED; i++)
        if (is_module(job, &module_fixed[i]))
            return true;
    return false;
}

/* ---- what is compiled ---- */

static void add_job(compile_fixture *f, module_group group, const fpa_head *head, const char *target)
{
    assert_true(f->count < MOST_MODULES);
    f->jobs[f->count++] =
        (compile_job){.head = head, .target = target_find(target), .group = (int)group, .dtype = head->dtype};
}

static void add_shipped(compile_fixture *f)
{
    for (int i = 0; i < f->heads.count; i++) {
        add_job(f, SHIPPED, f->heads.item[i].head, "cuda:sm_80");
        add_job(f, SHIPPED, f->heads.item[i].head, "cuda:sm_90");
    }
}

/* Each target gets some of the kinds, each kind two of the targets; sm_80 and sm_90 had them all. */
static void add_targets(compile_fixture *f)
{
    enum { EACH = 4 };
    int next = 0;
    for (int t = 0; t < target_count(); t++) {
        const fpa_target *target = target_at(t);
        if (target->backend != BACKEND_CUDA || target->capability == 80 || target->capability == 90)
            continue;
        for (int i = 0; i < EACH; i++)
            add_job(f, TARGETS, module_head(&f->heads, module_kinds[next++ % MODULE_KINDS]), target->name);
    }
}

static void add_narrow(compile_fixture *f)
{
    for (int n = 0; n < 2; n++)
        for (int k = 0; k < MODULE_KINDS; k++)
            add_job(f, NARROW, module_head(&f->narrow[n], module_kinds[k]),
                    (k + n) % 2 ? "cuda:sm_90a" : "cuda:sm_90");
}

/* All heads that are stored in 16 bits, most of which run on warpgroups. */
static void add_warpgroups(compile_fixture *f)
{
    for (int i = 0; i < f->heads.count; i++)
        if (f->heads.item[i].head->dtype != FPA_F32)
            add_job(f, WARPGROUPS, f->heads.item[i].head, "cuda:sm_90a");
}

static void add_widths(compile_fixture *f)
{
    for (int i = 0; i < f->widths.count; i++) {
        add_job(f, WIDTHS, f->widths.heads[i], "cuda:sm_80");
        add_job(f, WIDTHS, f->widths.heads[i], "cuda:sm_86");
    }
}

static void add_states(compile_fixture *f)
{
    for (int i = 0; i < f->states.count; i++)
        add_job(f, STATES, f->states.heads[i], "cuda:sm_90a");
}

static void add_lifts(compile_fixture *f)
{
    for (int t = 0; t < FPA_DTYPES; t++)
        for (int i = 0; i < f->lifts[t].count; i++) {
            add_job(f, LIFTS, f->lifts[t].heads[i], "cuda:sm_80");
            add_job(f, LIFTS, f->lifts[t].heads[i], t == FPA_F32 ? "cuda:sm_90" : "cuda:sm_90a");
        }
}

static const struct {
    void (*add)(compile_fixture *f);
    int too_large; /* so many may be refused as that */
} groups[MODULE_GROUPS] = {
    [STATES] = {add_states, 0},         [LIFTS] = {add_lifts, 0},     [NARROW] = {add_narrow, 0},
    [WARPGROUPS] = {add_warpgroups, 0}, [TARGETS] = {add_targets, 0}, [SHIPPED] = {add_shipped, 1},
    [WIDTHS] = {add_widths, 1},
};

/* Of kernels of warpgroups or of the others. Those that are to run to the front. */
static void choose_jobs(compile_fixture *f, bool warpgroups)
{
    share taken = {0};
    int chosen = 0;
    for (int i = 0; i < f->count; i++)
        if ((dear_tests() || is_fixed_module(&f->jobs[i])) && f->jobs[i].target->warpgroups == warpgroups &&
            share_take(&taken, chosen++)) {
            const compile_job job = f->jobs[i];
            f->jobs[i] = f->jobs[f->running];
            f->jobs[f->running++] = job;
        }
    share_report(&taken, "modules", chosen);
}

/* Spills and remarks, as that products of warpgroups wait for each other, are of optimised code: in make test of the longest kernel with a large state, of
 * clusters, of a portable head, and of a kernel of each kind that multiplies by warpgroups; of others that they get compiled is the question. NULL: nothing of it is
 * optimised; else the kernel, or the longest one where that is empty. */
static const char *optimised_kernel(const compile_job *job)
{
    static const struct {
        module_name module;
        const char *kernel;
    } some[] = {
        {{"ones", "f16", "cuda:sm_90a"}, "fused_chunk"},            /* packed rows */
        {{"trainable_dense", "f16", "cuda:sm_90a"}, "fused_chunk"}, /* two such blocks on a multiprocessor */
        {{"linear_d64_bf16", "bf16", "cuda:sm_90a"}, ""},
        {{"tspow4_d8", "f32", "cuda:sm_100"}, ""},
        {{"linear_d24_v48", "f16", "cuda:sm_90a"}, "fused_chunk"},
        {{"gated_power2_d64", "bf16", "cuda:sm_90a"}, "chunk_state"},
        {{"narrow", "bf16", "cuda:sm_90a"}, "chunk_output"}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (is_module(job, &some[i].module))
            return some[i].kernel;
    return NULL;
}

static compile_job *module_job(compile_fixture *f, const module_name *name)
{
    for (int i = 0; i < f->count; i++)
        if (is_module(&f->jobs[i], name))
            return &f->jobs[i];
    fail_msg("no test compiles %s, %s, %s", name->head, name->dtype, name->target);
    return NULL;
}

/* Those that are optimised come first, each with a kernel that others need not bring. */
void modules_choose_kernels(compile_fixture *f, bool warpgroups)
{
    function_set reached = {0};
    for (int optimised = 1; optimised >= 0; optimised--)
        for (int m = 0; m < MODULE_FIXED; m++) {
            compile_job *job = module_job(f, &module_fixed[m]);
            const char *kernel = optimised_kernel(job);
            if (job->target->warpgroups == warpgroups && (kernel != NULL) == optimised)
                compile_job_choose(job, &reached, kernel);
        }
    function_set_free(&reached);
}

void modules_compile(compile_fixture *f, bool warpgroups)
{
    const double start = clock_seconds();
    int all = 0;
    for (int i = 0; i < f->count; i++)
        all += f->jobs[i].target->warpgroups == warpgroups;
    choose_jobs(f, warpgroups);
    dear_report("modules, of them kernels that others have not,", f->running, all);
    if (!f->ready)
        return;
    if (!dear_tests())
        modules_choose_kernels(f, warpgroups);
    compile_jobs_run(f->running, f->jobs);
    for (int i = 0; i < f->running; i++)
        print_message("%-24s %-4s %-12s %5.1f s\n", f->jobs[i].head->name, dtype_name(f->jobs[i].dtype),
                      f->jobs[i].target->name, f->jobs[i].seconds);
    print_message("compiled in %.1f s\n", clock_seconds() - start);
}

int modules_setup(void **state)
{
    static compile_fixture f;
    const char *version;
    fpa_error error;
    f.ready = nvrtc_find(&version, &error) == FPA_OK;
    if (!f.ready)
        fprintf(stderr, "%s: %s\n", error.where, error.message);
    shipped_load(&f.heads);
    load_narrow(&f);
    load_heads(widths, &f.widths);
    load_heads(states, &f.states);
    load_lifts(&f);
    for (int g = 0; g < MODULE_GROUPS; g++)
        groups[g].add(&f);
    *state = &f;
    return 0;
}

int modules_teardown(void **state)
{
    compile_fixture *f = *state;
    shipped_free(&f->heads);
    for (int n = 0; n < 2; n++)
        shipped_free(&f->narrow[n]);
    head_list_free(&f->widths);
    head_list_free(&f->states);
    for (int t = 0; t < FPA_DTYPES; t++)
        head_list_free(&f->lifts[t]);
    return 0;
}

void modules_need_nvrtc(const compile_fixture *f)
{
    if (!f->ready)
        skip();
}

/* Every job of the group that went wrong is named. */
void modules_expect(const compile_fixture *f, module_group group)
{
    int wrong = 0, refused = 0, count = 0;
    modules_need_nvrtc(f);
    for (int i = 0; i < f->running; i++) {
        const compile_job *job = &f->jobs[i];
        if (job->group != (int)group)
            continue;
        count++;
        refused += job->too_large;
        wrong += job->problem[0] != 0;
        if (job->problem[0])
            print_error("%s, %s, %s: %s\n", job->head->name, dtype_name(job->dtype), job->target->name,
                        job->problem);
    }
    print_message("%d modules, %d refused as too large\n", count, refused);
    assert_int_equal(wrong, 0);
    assert_true(count > refused || share_is_part());
    assert_true(refused <= groups[group].too_large);
}
