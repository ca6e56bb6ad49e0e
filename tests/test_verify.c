/* test_verify: a correct module is accepted, and each way of being wrong is refused in words. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/half.h"
#include "../runtime/kernel.h"
#include "random_head.h"

#include <cmocka.h> /* last: it defines fail() */

enum { SEED = 3, RANDOM_HEADS = 60 };

/* What the module below does wrong. */
typedef enum fault {
    NO_FAULT,
    FAULT_WEIGHT,         /* one feature has half its weight */
    FAULT_MASK,           /* a token does not see its own key */
    FAULT_GATE,           /* the gate reaches the token's own key */
    FAULT_GROUP,          /* query heads are dealt out instead of grouped */
    FAULT_STRIDES,        /* q is read as if it were contiguous */
    FAULT_FUTURE,         /* the next token leaks in, far below the bound */
    FAULT_UNWRITTEN,      /* the last token is forgotten */
    FAULT_NAN,            /* one result is not finite */
    FAULT_PAST_END,       /* one element behind o is written */
    FAULT_WORKSPACE,      /* one byte behind the workspace is written */
    FAULT_TOO_SMALL,      /* the module calls its own workspace too small */
    FAULT_REPEAT,         /* results depend on what ran before */
    FAULT_STATE_MISSING,  /* the last element of the state is not written */
    FAULT_STATE_OLD,      /* the state misses the last token */
    FAULT_STATE_PLACE,    /* state_out is cleared before state_in is read */
    FAULT_STATE_EMPTY,    /* a call of no tokens clears the state */
    FAULT_STATE_PAST_END, /* one element behind the state is written */
    FAULT_NOISE,          /* within the bound, but far noisier than single precision */
    FAULT_LATE,           /* wrong from the third chunk on */
    FAULT_FORM,           /* only the chunked form is wrong */
} fault;

/* A test has one module at a time; launches carry no user data. */
static const fpa_head *module_head;
static fault module_fault;
static int module_calls, module_unloads;

static double row_of(const fpa_branch *branch, int w, int64_t h, const struct fpa_launch *a, const double *x)
{
    const fpa_matrix *matrix;
    double sum = 0;
    int slot = 0, row = branch->row[w];

    if (branch->source == FPA_INPUT)
        return x[row];
    matrix = &module_head->matrices[branch->source];
    for (int m = 0; m < branch->source; m++)
        slot += module_head->matrices[m].kind != FPA_MATRIX_CONSTANT;
    h = matrix->per_head ? h : 0;
    if (matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL)
        return (double)a->weights[slot][h * matrix->cols + row] * x[row];
    for (int c = 0; c < matrix->cols; c++)
        sum += x[c] * (matrix->data ? matrix->data[row * matrix->cols + c]
                                    : (double)a->weights[slot][(h * matrix->rows + row) * matrix->cols + c]);
    return sum;
}

/* phi, feature by feature: the index of a feature is a number whose digits are rows. */
static void features_of(const struct fpa_launch *a, int64_t h, const double *x, bool key, double *phi)
{
    int64_t at = 0;

    for (int t = 0; t < module_head->term_count; t++) {
        const fpa_term *term = &module_head->terms[t];
        int64_t count = 1;

        for (int l = 0; l < term->branch_count; l++)
            count *= term->branches[l].width;
        for (int64_t f = 0; f < count; f++) {
            double product = key ? term->weight.value : 1;
            int64_t rest = f;

            for (int l = term->branch_count - 1; l >= 0; l--) {
                const fpa_branch *branch = &term->branches[l];
                int w = (int)(rest % branch->width);

                rest /= branch->width;
                product *= row_of(branch, w, h, a, x) * (key && branch->gram ? branch->gram[w].value : 1);
            }
            phi[at++] = product;
        }
    }
    if (key && module_fault == FAULT_WEIGHT)
        phi[at / 2] *= 0.5;
}

static void read_vector(const void *from, int64_t at, int width, double scale, double *x)
{
    for (int c = 0; c < width; c++)
        x[c] = scale * dtype_load(module_head->dtype,
                                  (const char *)from + (at + c) * (int64_t)dtype_size(module_head->dtype));
}

static int64_t place(const int64_t stride[3], int64_t b, int64_t t, int64_t h)
{
    return b * stride[0] + t * stride[1] + h * stride[2];
}

/* The memory of one (batch, key head). */
typedef struct memory {
    int64_t features;
    double *state; /* [features][dv + 1] */
    double *phi;   /* [features] */
    double x[64], v[64];
} memory;

static void add_key(const struct fpa_launch *a, memory *m, int64_t b, int64_t t, int64_t h)
{
    int columns = module_head->dv + 1;
    double gate = a->log_gate ? exp((double)a->log_gate[place(a->gate_stride, b, t, h)]) : 1;
    double own = module_fault == FAULT_GATE ? gate : 1;

    read_vector(a->k, place(a->k_stride, b, t, h), module_head->d, 1, m->x);
    read_vector(a->v, place(a->v_stride, b, t, h), module_head->dv, 1, m->v);
    m->v[columns - 1] = 1;
    features_of(a, h, m->x, true, m->phi);
    for (int64_t f = 0; f < m->features; f++)
        for (int c = 0; c < columns; c++)
            m->state[f * columns + c] = gate * m->state[f * columns + c] + own * m->phi[f] * m->v[c];
}

static double divisor(double den)
{
    const double by_kind[FPA_NORMALIZE_KINDS] = {1, den + module_head->eps, fmax(den, module_head->eps),
                                                 1 + den};

    return by_kind[module_head->normalize];
}

/* The faults of one output. */
static double spoil(const struct fpa_launch *a, int64_t b, int64_t t, int64_t h, int c, double o)
{
    double next[64] = {0};

    switch (module_fault) {
    case FAULT_NAN:
        return t == 6 && c == 0 ? NAN : o;
    case FAULT_NOISE:
        return o * (1 + 4e-6 * sin((double)(1000 * t + 100 * h + c)));
    case FAULT_REPEAT:
        return o * (1 + 1e-6 * (module_calls % 2));
    case FAULT_LATE:
        return t >= 17 ? 1.01 * o : o;
    case FAULT_FUTURE:
        if (t + 1 < a->length)
            read_vector(a->v, place(a->v_stride, b, t + 1, h * a->heads / a->query_heads), module_head->dv, 1,
                        next);
        return o * (1 + 1e-6 * tanh(next[0]));
    default:
        return o;
    }
}

static void write_output(const struct fpa_launch *a, memory *m, int64_t b, int64_t t, int64_t hq)
{
    int dv = module_head->dv;
    int64_t q = place(a->q_stride, b, t, hq), o = place(a->o_stride, b, t, hq);
    size_t element = dtype_size(module_head->dtype);
    double sums[64] = {0};

    if (module_fault == FAULT_UNWRITTEN && t == a->length - 1)
        return;
    if (module_fault == FAULT_STRIDES)
        q = ((b * a->length + t) * a->query_heads + hq) * module_head->d;
    read_vector(a->q, q, module_head->d, module_head->scale, m->x);
    features_of(a, hq * a->heads / a->query_heads, m->x, false, m->phi);
    for (int64_t f = 0; f < m->features; f++)
        for (int c = 0; c <= dv; c++)
            sums[c] += m->phi[f] * m->state[f * (dv + 1) + c];
    for (int c = 0; c < dv; c++)
        dtype_store(module_head->dtype, (char *)a->o + (o + c) * (int64_t)element,
                    spoil(a, b, t, hq, c, sums[c] / divisor(sums[dv])));
    if (module_fault == FAULT_PAST_END && t == a->length - 1)
        dtype_store(module_head->dtype, (char *)a->o + (o + dv) * (int64_t)element, 0);
}

static void query_group(const struct fpa_launch *a, memory *m, int64_t b, int64_t t, int64_t h)
{
    int64_t group = a->query_heads / a->heads;

    for (int64_t i = 0; i < group; i++)
        write_output(a, m, b, t, module_fault == FAULT_GROUP ? i * a->heads + h : h * group + i);
}

/* S row-major, then z when normalised. */
static int64_t state_index(int64_t f, int c)
{
    int dv = module_head->dv;

    return c < dv ? f * dv + c : (int64_t)head_features(module_head) * dv + f;
}

static void move_state(const struct fpa_launch *a, memory *m, int64_t b, int64_t h, bool out)
{
    const int64_t *stride = out ? a->state_out_stride : a->state_in_stride;
    char *base = out ? a->state_out : (void *)(uintptr_t)a->state_in;
    int64_t at = b * stride[0] + h * stride[1], element = (int64_t)dtype_size(module_head->state_dtype);
    int columns = module_head->dv + (module_head->normalize != FPA_NORMALIZE_NONE);

    for (int64_t f = 0; f < m->features; f++)
        for (int c = 0; c < columns; c++) {
            double *value = &m->state[f * (module_head->dv + 1) + c];
            char *entry = base + (at + state_index(f, c)) * element;

            if (!out)
                *value = dtype_load(module_head->state_dtype, entry);
            else if (module_fault != FAULT_STATE_MISSING || f + 1 < m->features || c + 1 < columns)
                dtype_store(module_head->state_dtype, entry, *value);
        }
    if (out && module_fault == FAULT_STATE_PAST_END)
        dtype_store(module_head->state_dtype, base + (at + m->features * columns) * element, 0);
}

static void run_sequence(const struct fpa_launch *a, memory *m, int64_t b, int64_t h)
{
    bool causal = module_head->causal;

    memset(m->state, 0, (size_t)m->features * (size_t)(module_head->dv + 1) * sizeof(double));
    if (a->state_in && !(module_fault == FAULT_STATE_PLACE && a->state_in == a->state_out) &&
        !(module_fault == FAULT_STATE_EMPTY && a->length == 0))
        move_state(a, m, b, h, false);
    for (int64_t t = 0; t < a->length && !causal; t++)
        add_key(a, m, b, t, h);
    for (int64_t t = 0; t < a->length; t++) {
        if (module_fault == FAULT_MASK)
            query_group(a, m, b, t, h);
        if (module_fault == FAULT_STATE_OLD && a->state_out && t == a->length - 1 && a->length > 1) {
            move_state(a, m, b, h, true);
        }
        if (causal)
            add_key(a, m, b, t, h);
        if (module_fault != FAULT_MASK)
            query_group(a, m, b, t, h);
    }
    if (a->state_out && !(module_fault == FAULT_STATE_OLD && a->length > 1))
        move_state(a, m, b, h, true);
}

static size_t workspace_of(int form, const struct fpa_launch *a)
{
    (void)form, (void)a;
    return (size_t)head_features(module_head) * (size_t)(module_head->dv + 2) * sizeof(double);
}

static int run_module(int form, const struct fpa_launch *a)
{
    memory m = {.features = (int64_t)head_features(module_head), .state = a->workspace};
    fault kept = module_fault;

    assert_int_equal((uintptr_t)a->workspace % 64, 0);
    module_calls++;
    if (module_fault == FAULT_TOO_SMALL)
        return 1;
    if (module_fault == FAULT_FORM)
        module_fault = form == FORM_CHUNKED ? FAULT_MASK : NO_FAULT;
    m.phi = m.state + m.features * (module_head->dv + 1);
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            run_sequence(a, &m, b, h);
    if (module_fault == FAULT_WORKSPACE)
        ((char *)a->workspace)[a->workspace_size] = 0;
    module_fault = kept;
    return 0;
}

static void unload_module(fpa_module *module)
{
    (void)module;
    module_unloads++;
}

static const fpa_backend test_backend = {.name = "test", .unload = unload_module};

static fpa_module make_module(const fpa_head *head, fault kind)
{
    module_head = head;
    module_fault = kind;
    module_calls = 0;
    return (fpa_module){.backend = &test_backend, .workspace = workspace_of, .forward = run_module};
}

static fpa_facts make_facts(const fpa_head *head)
{
    double features = head_features(head);
    fpa_facts facts = {
        .target = "test", .features = (int64_t)features, .chunk = head->chunk ? head->chunk : 8};

    snprintf(facts.name, sizeof facts.name, "%s", head->name);
    facts.state_elements = facts.features * (head->dv + (head->normalize != FPA_NORMALIZE_NONE));
    facts.forms =
        head->causal ? 1 << FORM_PARALLEL | 1 << FORM_CHUNKED | 1 << FORM_RECURRENT : 1 << FORM_PARALLEL;
    for (int form = 0; form < FORMS; form++)
        facts.flop[form] = 4 * features * head->dv;
    return facts;
}

static fpa_status verify(const fpa_head *head, fault kind, fpa_verdict *verdict, fpa_error *error)
{
    fpa_module module = make_module(head, kind);
    fpa_facts facts = make_facts(head);

    return verify_module(head, &facts, &module, verdict, error);
}

/* One term of the TSPOW of degree 2 for each block, the later blocks with weight 2. */
static fpa_head *tspow(int d, int dv, int block)
{
    fpa_head *head = head_new();

    assert_non_null(head);
    head->name = arena_string(&head->memory, "tspow2");
    head->d = d;
    head->dv = dv;
    head->chunk = 8;
    head->term_count = d / block;
    head->terms = arena_array(&head->memory, (size_t)head->term_count, sizeof *head->terms);
    for (int t = 0; t < head->term_count; t++) {
        fpa_branch *branches = arena_array(&head->memory, 2, sizeof *branches);

        head->terms[t] = (fpa_term){.weight = number_int(1), .branch_count = 2, .branches = branches};
        for (int l = 0; l < 2; l++) {
            branches[l] = (fpa_branch){.kind = FPA_BRANCH_DIAGONAL, .source = FPA_INPUT};
            branches[l].width = l ? d - t * block : block;
            branches[l].row = arena_array(&head->memory, (size_t)branches[l].width, sizeof(int));
            branches[l].gram = arena_array(&head->memory, (size_t)branches[l].width, sizeof(fpa_number));
            for (int w = 0; w < branches[l].width; w++) {
                branches[l].row[w] = t * block + w;
                branches[l].gram[w] = number_int(w < block ? 1 : 2);
            }
        }
    }
    return head;
}

static void a_correct_module_is_accepted(void **state)
{
    (void)state;
    for (int kind = 0; kind < FPA_NORMALIZE_KINDS; kind++)
        for (int gate = 0; gate < 2; gate++) {
            fpa_head *head = tspow(8, 5, 4);
            fpa_verdict verdict;
            fpa_error error = {0};

            head->normalize = (fpa_normalize)kind;
            head->gate = gate;
            if (verify(head, NO_FAULT, &verdict, &error) != FPA_OK)
                fail_msg("%s: %s", error.where, error.message);
            for (int form = 0; form < FORMS; form++) {
                assert_true(verdict.form[form].checked);
                assert_true(verdict.form[form].worst > 0 && verdict.form[form].worst < 1);
                assert_true(verdict.form[form].tau > 0 && verdict.form[form].tau < 2e-5);
                assert_true(verdict.form[form].rms_ratio <= 2);
            }
            assert_true(verdict.problems >= 8);
            assert_non_null(strstr(verdict.text, "chunked: "));
            assert_non_null(strstr(verdict.text, "to 31 tokens")); /* 3c + 7 */
            assert_null(strchr(verdict.text, '\n'));
            head_free(head);
        }
}

static void correct_modules_of_random_heads_are_accepted(void **state)
{
    random_limits limits = random_all;

    (void)state;
    limits.features = 80;
    limits.half = true;
    print_message("seeds %d..%d\n", SEED, SEED + RANDOM_HEADS - 1);
    for (int i = 0; i < RANDOM_HEADS; i++) {
        fpa_head *head = random_head(SEED + i, &limits);
        fpa_verdict verdict;
        fpa_error error = {0};

        if (verify(head, NO_FAULT, &verdict, &error) != FPA_OK)
            fail_msg("seed %d: %s: %s", SEED + i, error.where, error.message);
        assert_true(verdict.form[FORM_PARALLEL].checked);
        assert_int_equal(verdict.form[FORM_CHUNKED].checked, head->causal);
        head_free(head);
    }
}

static void one_wrong_weight_of_2304_features_is_seen(void **state)
{
    fpa_head *head = tspow(64, 2, 8);
    fpa_verdict verdict;
    fpa_error error = {0};

    (void)state;
    assert_true(head_features(head) == 2304);
    assert_int_equal(verify(head, FAULT_WEIGHT, &verdict, &error), FPA_REFUSED);
    assert_non_null(strstr(error.message, "but the formula gives"));
    head_free(head);
}

static const struct {
    fault kind;
    const char *words[3];
} refusals[] = {
    {FAULT_WEIGHT, {"but the formula gives", "allowed is", "column"}},
    {FAULT_MASK, {"token 1,", "but the formula gives", "parallel form"}},
    {FAULT_GATE, {"but the formula gives", "token", "allowed is"}},
    {FAULT_GROUP, {"but the formula gives", "4 query heads", "2 heads"}},
    {FAULT_STRIDES, {"o at batch", "head-major", "is not a number"}},
    {FAULT_FUTURE, {"changing tokens 4 and later changed an earlier output"}},
    {FAULT_UNWRITTEN, {"was not written", "token 1,", "1 x 1 tokens"}},
    {FAULT_NAN, {"is not a number", "token 7,", "column 1"}},
    {FAULT_PAST_END, {"wrote outside the elements of o"}},
    {FAULT_WORKSPACE, {"wrote outside its workspace of"}},
    {FAULT_TOO_SMALL, {"returned 1: it finds the workspace"}},
    {FAULT_REPEAT, {"the same call twice gave different bits"}},
    {FAULT_STATE_MISSING, {"an element of the final state was not written"}},
    {FAULT_STATE_OLD, {"cut after", "but the formula gives"}},
    {FAULT_STATE_PLACE, {"cut after", "but the formula gives"}},
    {FAULT_STATE_EMPTY, {"a call of no tokens changed the state"}},
    {FAULT_STATE_PAST_END, {"wrote outside the elements of the final state"}},
    {FAULT_NOISE, {"the RMS error is", "more than twice"}},
    {FAULT_LATE, {"token 18,", "but the formula gives"}},
    {FAULT_FORM, {"chunked form", "but the formula gives"}},
};

static void every_fault_is_refused_in_its_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        fpa_head *head = tspow(8, 5, 4);
        fpa_verdict verdict;
        fpa_error error = {0};

        head->gate = true;
        if (verify(head, refusals[i].kind, &verdict, &error) != FPA_REFUSED)
            fail_msg("fault %d was accepted: %s", (int)refusals[i].kind, verdict.text);
        assert_string_equal(error.where, "tspow2");
        for (int w = 0; w < 3 && refusals[i].words[w]; w++)
            if (!strstr(error.message, refusals[i].words[w]))
                fail_msg("fault %d: expected \"%s\" in \"%s\"", (int)refusals[i].kind, refusals[i].words[w],
                         error.message);
        head_free(head);
    }
}

static void a_verdict_does_not_depend_on_when_it_is_made(void **state)
{
    fpa_head *head = tspow(8, 5, 4);
    fpa_verdict first, second;

    (void)state;
    assert_int_equal(verify(head, NO_FAULT, &first, NULL), FPA_OK);
    assert_int_equal(verify(head, NO_FAULT, &second, NULL), FPA_OK);
    assert_string_equal(first.text, second.text);
    head_free(head);
}

/* A chunk of 4096 makes 3c + 7 tokens dear for the reference: it then looks at some of them. */
static void long_chunks_are_checked_on_some_tokens_and_the_text_says_so(void **state)
{
    fpa_head *head = tspow(4, 1, 4);
    fpa_verdict verdict;
    fpa_error error = {0};
    long long judged, written;

    (void)state;
    head->chunk = 4096;
    if (verify(head, NO_FAULT, &verdict, &error) != FPA_OK)
        fail_msg("%s: %s", error.where, error.message);
    assert_non_null(strstr(verdict.text, "recurrent: "));
    assert_non_null(strstr(verdict.text, "to 12295 tokens"));
    assert_int_equal(sscanf(strstr(verdict.text, "tokens, ") + 8, "%lld of %lld", &judged, &written), 2);
    assert_true(judged > 0 && judged < written);
    head_free(head);
}

static void a_module_without_forms_is_refused(void **state)
{
    fpa_head *head = tspow(8, 5, 4);
    fpa_module module = make_module(head, NO_FAULT);
    fpa_facts facts = make_facts(head);
    fpa_verdict verdict;
    fpa_error error;

    (void)state;
    facts.forms = 0;
    assert_int_equal(verify_module(head, &facts, &module, &verdict, &error), FPA_REFUSED);
    assert_non_null(strstr(error.message, "no form"));
    head_free(head);
}

static void a_kernel_describes_its_head_and_owns_its_module(void **state)
{
    random_limits limits = random_all;
    fpa_head *head = random_head(SEED + 4, &limits);
    fpa_module module = make_module(head, NO_FAULT);
    fpa_facts facts = make_facts(head);
    fpa_kernel *kernel = NULL;
    fpa_error error = {0};

    (void)state;
    module_unloads = 0;
    if (verify_kernel(head, &facts, &module, NULL, false, &kernel, &error) != FPA_OK)
        fail_msg("%s: %s", error.where, error.message);
    assert_string_equal(kernel->description.name, head->name);
    assert_string_equal(kernel->description.dtype, "f32");
    assert_int_equal(kernel->description.d, head->d);
    assert_int_equal(kernel->description.dv, head->dv);
    assert_int_equal(kernel->description.features, facts.features);
    assert_int_equal(kernel->description.normalized, head->normalize != FPA_NORMALIZE_NONE);
    assert_int_equal(kernel->description.from_cache, 0);
    assert_non_null(strstr(kernel->description.verdict, "parallel: "));
    for (int m = 0, n = 0; m < head->matrix_count; m++)
        if (head->matrices[m].name)
            assert_string_equal(kernel->description.weight_names[n++], head->matrices[m].name);
    assert_int_equal(module_unloads, 0);
    kernel_free(kernel);
    assert_int_equal(module_unloads, 1);
    kernel_free(NULL);
}

static void a_stored_verdict_is_taken_over_without_a_run(void **state)
{
    fpa_head *head = tspow(8, 5, 4);
    fpa_module module = make_module(head, FAULT_WEIGHT);
    fpa_facts facts = make_facts(head);
    fpa_kernel *kernel = NULL;

    (void)state;
    assert_int_equal(verify_kernel(head, &facts, &module, "checked before", true, &kernel, NULL), FPA_OK);
    assert_string_equal(kernel->description.verdict, "checked before");
    assert_int_equal(kernel->description.from_cache, 1);
    assert_int_equal(module_calls, 0);
    kernel_free(kernel);
}

static void a_refused_module_is_unloaded_and_no_kernel_is_made(void **state)
{
    fpa_head *head = tspow(8, 5, 4);
    fpa_module module = make_module(head, FAULT_MASK);
    fpa_facts facts = make_facts(head);
    fpa_kernel *kernel = NULL;
    fpa_error error;

    (void)state;
    module_unloads = 0;
    assert_int_equal(verify_kernel(head, &facts, &module, NULL, false, &kernel, &error), FPA_REFUSED);
    assert_null(kernel);
    assert_int_equal(module_unloads, 1);
}

static void halves_round_to_nearest_even_and_back(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float half = f16_to_float((uint16_t)bits), brain = bf16_to_float((uint16_t)bits);

        if (!isnan(half))
            assert_int_equal(f16_from_float(half), bits);
        if (!isnan(brain))
            assert_int_equal(bf16_from_float(brain), bits);
    }
    assert_int_equal(f16_from_float(1 + 0x1p-11f), 0x3c00); /* a tie: to even */
    assert_int_equal(f16_from_float(1 + 3 * 0x1p-11f), 0x3c02);
    assert_int_equal(f16_from_float(0x1p-25f), 0);
    assert_int_equal(f16_from_float(65519), 0x7bff);
    assert_int_equal(f16_from_float(65520), 0x7c00);
    assert_int_equal(bf16_from_float(1 + 0x1p-8f), 0x3f80);
    assert_int_equal(bf16_from_float(1 + 3 * 0x1p-8f), 0x3f82);
    assert_true(isnan(f16_to_float(f16_from_float(NAN))) && isnan(bf16_to_float(bf16_from_float(NAN))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correct_module_is_accepted),
        cmocka_unit_test(correct_modules_of_random_heads_are_accepted),
        cmocka_unit_test(one_wrong_weight_of_2304_features_is_seen),
        cmocka_unit_test(every_fault_is_refused_in_its_words),
        cmocka_unit_test(a_verdict_does_not_depend_on_when_it_is_made),
        cmocka_unit_test(long_chunks_are_checked_on_some_tokens_and_the_text_says_so),
        cmocka_unit_test(a_module_without_forms_is_refused),
        cmocka_unit_test(a_kernel_describes_its_head_and_owns_its_module),
        cmocka_unit_test(a_stored_verdict_is_taken_over_without_a_run),
        cmocka_unit_test(a_refused_module_is_unloaded_and_no_kernel_is_made),
        cmocka_unit_test(halves_round_to_nearest_even_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
