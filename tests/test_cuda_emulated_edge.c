/* Emitted CUDA kernels of sm_90a on the CPU: NaN and infinities at a token change no bit of an output before it, and of
 * v no other column; from the token on they are there. (C kernels: test_causal_edge.c.)
 *
 * make test: some heads, which have each mechanism, each with a fifth of the changes; make test-all: all. FPA_TEST_HEAD: one alone, by its name. */
#include "base/parallel.h"
#include "claims.h"
#include "dear.h"
#include "emulate/trials.h"
#include "machine/cuda_mechanism.h"
#include "runtime/verify/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SEED = 20261123, TILE = 64 };

static const char *const fixed_heads[] = {
    "shared",         /* split_outer, gate */
    "leaning",        /* split_outer, values in boxes that have other heads' */
    "few",            /* fused_packed, ones behind values */
    "fewhalf",        /* fused_packed, gate, ones beside values, f16 */
    "anyrows",        /* fused_rows, queries brought back */
    "onesnarrow",     /* ones in a slab of their own */
    "linear",         /* fused_coordinates, gate, portable state and read */
    "float",          /* fused_panel and split_panel, f32 */
    "clustered",      /* cluster_scan, gate, ones */
    "near",           /* a window, */
    "nearbrief",      /* in one pass */
    "clusteredwaves", /* turned in either */
    "liftedpass",     /* fused_coordinates that makes them; cluster_scan, for which lift_rows does */
};

/* One segment, several, by threads, heads beside each other, a cluster. */
static const emulated_call edge_calls[] = {
    {3, 7, 1, 1, 2, LAYOUT_PLAIN, 0, 1, false, 0, 0, 0},
    {3, 7, 1, 1, 1, LAYOUT_PLAIN, 0, 132, false, 0, 0, 0},
    {2, 30, 1, 1, 1, LAYOUT_PADDED, 0, 1, true, 0, 0, 0},
    {2, 30, 1, 2, 2, LAYOUT_PIECES, 0, 1, false, 0, 0, 0},
    {3, 7, 1, 1, 1, LAYOUT_PLAIN, 0, 132, false, 2, 0, 0},
};

enum operand { Q, K, V, GATE, OPERANDS };
static const char *const operand_names[OPERANDS] = {"q", "k", "v", "log_gate"};

/* One change: from column `column` on, of `columns` of them, at one token. */
struct change {
    enum operand operand;
    int64_t token;
    int column; /* -1: all */
    double value;
};

static fpa_field *field_of(fpa_trial *t, enum operand operand)
{
    fpa_field *const fields[OPERANDS] = {&t->q_field, &t->k_field, &t->v_field, &t->gate_field};
    return fields[operand];
}

static void apply(fpa_trial *t, const struct change *change)
{
    fpa_field *field = field_of(t, change->operand);
    for (int64_t b = 0; b < field->batch; b++)
        for (int64_t h = 0; h < field->heads; h++)
            for (int64_t i = 0; i < field->entries; i++)
                if (change->column < 0 || i == change->column)
                    field_put(field, b, change->token, h, i, change->value);
}

static bool same(const fpa_field *a, const fpa_field *b, int64_t at, int64_t token, int64_t h, int64_t column)
{
    return memcmp(field_at(a, at, token, h, column), field_at(b, at, token, h, column),
                  dtype_size(a->dtype)) == 0;
}

/* The first element that is not as it has to be, or FPA_OK. */
static fpa_status compare(const struct change *c, const fpa_field *before, const fpa_field *after,
                          const char *form, fpa_error *error)
{
    for (int64_t b = 0; b < after->batch; b++)
        for (int64_t token = 0; token < after->tokens; token++)
            for (int64_t h = 0; h < after->heads; h++)
                for (int64_t i = 0; i < after->entries; i++) {
                    const bool reached = token >= c->token && (c->column < 0 || i == c->column);
                    const bool lost =
                        c->operand == V && reached && isfinite(field_get(after, b, token, h, i));
                    if (lost || (!reached && !same(before, after, b, token, h, i)))
                        return (fail)(error, FPA_REFUSED, form,
                                      "%s: %s[%lld] = %g (column %d) %s o[%lld] (column %lld)", form,
                                      operand_names[c->operand], (long long)c->token, c->value, c->column,
                                      lost ? "is lost in" : "changes", (long long)token, (long long)i);
                }
    return FPA_OK;
}

static void check_change(fpa_check *c, const fpa_field *before, const struct change *change)
{
    fpa_field after;
    check_make_output(c, &after);
    apply(c->trial, change);
    check_run(c, (fpa_run){.to = c->trial->shape.length, .o = &after});
    trial_restore(c->trial);
    if (!c->status)
        c->status = compare(change, before, &after, form_name(c->form), c->error);
    field_free(&after);
}

/* At the first token of a tile, inside, at its last one. make test: by turns, every fifth of them. */
static fpa_status check_form(fpa_trial *t, const fpa_module *module, fpa_form_index form, int turn,
                             fpa_error *error)
{
    static const struct change changes[] = {
        {V, TILE, -1, NAN},
        {V, TILE + 37, -1, INFINITY},
        {V, 2 * TILE - 1, -1, -INFINITY},
        {V, TILE + 37, 1, NAN},
        {V, 5, 3, -INFINITY},
        {K, TILE + 37, -1, NAN},
        {K, TILE, -1, INFINITY},
        {Q, TILE + 37, -1, NAN},
        {Q, 2 * TILE - 1, -1, -INFINITY},
        {GATE, TILE + 37, -1, NAN},
        {GATE, TILE, -1, INFINITY},
        {GATE, TILE + 38, -1, INFINITY},
        {GATE, TILE - 1, -1, -INFINITY},
    };
    fpa_measure measure = {0};
    fpa_check c = {t, module, form, "", &measure, error, FPA_OK};
    fpa_field before;
    check_make_output(&c, &before);
    check_run(&c, (fpa_run){.to = t->shape.length, .o = &before});
    for (size_t i = 0; i < sizeof changes / sizeof *changes && !c.status; i++)
        if ((changes[i].operand != GATE || t->head->gate) && (dear_tests() || (i + (size_t)turn) % 5 == 0))
            check_change(&c, &before, &changes[i]);
    field_free(&before);
    return c.status;
}

static fpa_status check_call(emulated_module *emulated, const fpa_head *head, const fpa_facts *facts,
                             const emulated_call *c, int turn, fpa_error *error)
{
    fpa_trial trial = {0};
    const fpa_shape shape = {.batch = c->batch,
                             .length = (int64_t)c->times * facts->chunk + c->more,
                             .heads = c->heads,
                             .query_heads = c->query_heads,
                             .layout = c->layout,
                             .inputs = head->normalize ? INPUTS_POSITIVE : INPUTS_DENSE};
    fpa_status status = trial_make(&trial, head, facts, shape, SEED, error);
    emulated_choose(c, emulated, &trial);
    emulated->late = LATE_PRODUCTS;
    for (int form = FORM_PARALLEL; form <= FORM_CHUNKED && !status; form++)
        if (form == FORM_CHUNKED || (!c->cluster && c->multiprocessors == 1 && !c->threads))
            status = check_form(&trial, &emulated->module, (fpa_form_index)form, turn, error);
    trial_free(&trial);
    return status;
}

struct job {
    const emulated_fixture *fixture;
    int head;
    const fpa_source *source;
    int turn; /* of changes, beside the call's */
    fpa_status status;
    fpa_error error;
    uint64_t launched;
};

static void run_job(int index, void *argument)
{
    struct job *j = &((struct job *)argument)[index];
    const fpa_source *source = j->source;
    emulated_module emulated;
    char folder[96];
    snprintf(folder, sizeof folder, "%s/%d", j->fixture->folder, j->head);
    mkdir(folder, 0700);
    j->status = emulated_open(&emulated, source->code, NULL, source->facts.name, folder, &j->error);
    for (size_t i = 0; i < sizeof edge_calls / sizeof *edge_calls && !j->status; i++)
        if (!edge_calls[i].cluster || emulated.cuda.kernel[CUDA_CLUSTER_SCAN])
            j->status = check_call(&emulated, j->fixture->list.heads[j->head], &source->facts, &edge_calls[i],
                                   j->turn + (int)i, &j->error);
    j->launched = emulated.launched;
    emulated_close(&emulated);
}

static bool is_wanted(const fpa_head *head)
{
    const char *only = getenv("FPA_TEST_HEAD");
    if (only)
        return strcmp(head->name, only) == 0;
    return dear_tests() || is_one_of(fixed_heads, sizeof fixed_heads / sizeof *fixed_heads, head->name);
}

static void what_is_not_finite_reaches_no_output_before_it(void **state)
{
    static struct job jobs[EMULATED_MOST_HEADS];
    const emulated_fixture *f = *state;
    const uint64_t wanted = 1u << CUDA_CHUNK_OUTPUT | 1u << CUDA_FUSED_CHUNK | 1u << CUDA_CLUSTER_SCAN;
    uint64_t launched = 0;
    int count = 0, wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < f->list.count; i++)
        if (f->list.heads[i]->causal && is_wanted(f->list.heads[i]))
            jobs[count++] = (struct job){.fixture = f, .head = i, .source = emulated_source(f, i), .turn = i};
    dear_report("heads", count, f->list.count);
    parallel_run(count, run_job, jobs);
    for (int i = 0; i < count; i++) {
        if (jobs[i].status)
            print_error("%s: %s\n", f->list.heads[jobs[i].head]->name, jobs[i].error.message);
        wrong += jobs[i].status != FPA_OK;
        launched |= jobs[i].launched;
    }
    assert_int_equal(wrong, 0);
    assert_true(count > 0);
    assert_true((launched & wanted) == wanted || getenv("FPA_TEST_HEAD"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_finite_reaches_no_output_before_it),
    };
    return cmocka_run_group_tests_name("cuda emulated edge", tests, emulated_setup, emulated_teardown);
}
