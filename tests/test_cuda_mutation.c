/* Verification must be able to fail on a GPU too: emitted CUDA kernels with one mistake each are refused.
 * That the mistakes can be made in what is emitted today is tested everywhere; the rest is skipped where
 * there is no GPU. */
#include "gen/plan/cuda/cuda.h"
#include "runtime/cuda/backend.h"
#include "base/parallel.h"
#include "runtime/verify/verify.h"
#include "gpu_problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

static const char spec[] =
    "local function small(name, dtype)\n"
    "  return head { name = name, d = 16, dv = 16, chunk = 64, gate = true, normalize = 'sum',\n"
    "                dtype = dtype, terms = tspow { d = 16, degree = 2, block = 4 } }\n"
    "end\n"
    "return { small('small_f32', 'f32'), small('small_bf16', 'bf16'), small('small_f16', 'f16') }\n";

/* Replace the count-th occurrence (from 1) of `from` by `to`. */
struct mutation {
    const char *what;
    const char *from, *to;
    int count;
};

static const struct mutation mutations[] = {
    {"nothing", "", "", 1}, /* what is emitted has to be accepted, or the rest says nothing */
    {"one wrong weight", "    2.0f, 2.0f,", "    2.0f, 1.0f,", 1},
    {"one wrong row in one feature", "0, 0, 0, 0, 1, 1, 1, 1,", "0, 0, 0, 5, 1, 1, 1, 1,", 1},
    {"a missing tile of the state", "group < GROUPS; group++", "group < GROUPS - 1; group++", 1},
    {"a mask that hides the own token", "if (key > behind + lane_row()", "if (key >= behind + lane_row()", 1},
    {"a mask that shows the next token", "if (key > behind + lane_row()", "if (key > 1 + behind + lane_row()",
     1},
    {"a panel of keys that is forgotten", "first_key = chunk * (int)call.chunk;",
     "first_key = chunk * (int)call.chunk + PANEL;", 1},
    {"scores that do not fade", "s[n][i] *= power_of_two(", "s[n][i] *= 1.0f + 0.0f * power_of_two(", 1},
    {"a state that does not fade", "factor = power_of_two((last.x - before.x) + (last.y - before.y));",
     "factor = 1.0f;", 1},
    {"keys that do not fade in the state", "power_of_two((last.x - own.x) + (last.y - own.y))", "1.0f", 1},
    {"what is read of a state does not fade", "const float factor = power_of_two(sum.x + sum.y);",
     "const float factor = 1.0f;", 1},
    {"segments that do not fade", "factor * base[i] + add[i]", "base[i] + add[i]", 1},
    {"segments that are forgotten", "for (i64 s = 0; s < segment; s++)", "for (i64 s = 1; s < segment; s++)",
     1},
    {"an initial state that is ignored", "const bool given = segment == 0 && call.state_in;",
     "const bool given = segment < 0;", 1},
    {"an initial sum of weights that is ignored", "c[u][COLUMN_TILES][2 * i] = state_to_float(",
     "c[u][COLUMN_TILES][2 * i] = 0.0f * state_to_float(", 1},
    {"a last token that is not written", "if (query < count && part", "if (query + 1 < count && part", 1},
    {"an output one element too long", "    o += block * WIDTH;",
     "    o += block * WIDTH;\n    if (threadIdx.x == 0)\n        o[DV] = from_float(1.0f);", 1},
    {"the wrong key head of a group", "(u32)query_head / (query_heads / (u32)call.heads)",
     "(u32)query_head % (u32)call.heads", 1},
    {"a recurrent state that does not fade", "const float a = decay * s.get(j)", "const float a = s.get(j)",
     1},
    {"a recurrent sum of weights that does not fade", "const float a = decay * step_get(z[u])",
     "const float a = step_get(z[u])", 1},
    {"a recurrent form that ignores its state", "    if (call.state_in)\n        states.in",
     "    if (call.state_in && call.length > 1000000)\n        states.in", 1},
    /* of NAME_recall */
    {"recent tokens without the query's own", "tokens = (int)call.recent + 1", "tokens = (int)call.recent",
     1},
    {"recent tokens that do not fade", "weight *= recall_decay(", "weight *= 1.0f + 0.0f * recall_decay(", 1},
    {"a state that does not fade behind recent tokens", "const float decay = recall_decay(call, task, 0);",
     "const float decay = 1.0f;", 1},
    {"a sum of weights without recent tokens", "den[g] += recall_weights()",
     "den[g] += 0.0f * recall_weights()", 1},
};

enum { HEADS = 3, MUTATIONS = sizeof mutations / sizeof *mutations };

struct fixture {
    bool ready; /* there is a GPU */
    test_gpu gpu;
    const fpa_target *target;
    fpa_head_list list;
    fpa_source source[HEADS];
};

/* One mutant; what became of it stays here. */
typedef struct mutant {
    const struct fixture *fixture;
    int head;
    const struct mutation *mutation;
    char *code;
    fpa_status status;
    fpa_error error;
} mutant;

static char *mutate(const struct fixture *f, int head, const struct mutation *m)
{
    const char *text = f->source[head].code, *at = text;
    char *result = NULL;
    for (int i = 0; i < m->count; i++) {
        at = strstr(i ? at + 1 : at, m->from);
        if (!at)
            fail_msg("%s, %s: the emitted code has no '%s'", f->list.heads[head]->name, m->what, m->from);
    }
    if (asprintf(&result, "%.*s%s%s", (int)(at - text), text, m->to, at + strlen(m->from)) < 0)
        fail_msg("out of memory");
    return result;
}

static int setup(void **state)
{
    static struct fixture f;
    fpa_error error;
    *state = &f;
    f.ready = gpu_open(&f.gpu, 0);
    f.target = target_find("cuda:sm_80");
    fpa_status status = f.ready ? backend_cuda.choose(NULL, "cuda", &f.target, &error) : FPA_OK;
    if (!status && f.target->warpgroups) /* the portable kernels, which every GPU has */
        f.target = target_find("cuda:sm_90");
    if (!status)
        status = spec_load_text("mutation.lua", NULL, spec, sizeof spec - 1, &f.list, &error);
    for (int i = 0; i < HEADS && !status; i++)
        status = source_generate(f.list.heads[i], f.target->name, &f.source[i], &error);
    if (status)
        print_error("%s: %s\n", error.where, error.message);
    return status ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < HEADS; i++)
        source_free(&f->source[i]);
    head_list_free(&f->list);
    gpu_close(&f->gpu);
    return 0;
}

/* Compile and verify a text under the facts of what it was made from. */
static void judge(int index, void *argument)
{
    mutant *one = &((mutant *)argument)[index];
    const fpa_head *head = one->fixture->list.heads[one->head];
    const fpa_options options = {.target = one->fixture->target->name};
    fpa_source source = one->fixture->source[one->head];
    fpa_object object = {0};
    fpa_module module = {0};
    fpa_verdict verdict;
    source.code = one->code;
    one->status = backend_cuda.compile(&options, &source, &object, &one->error);
    if (!one->status)
        one->status = backend_cuda.load(&options, &object, source.facts.name, &module, &one->error);
    if (!one->status) {
        one->status = verify_module(head, &source.facts, &module, &verdict, &one->error);
        backend_cuda.unload(&module);
    }
    free(object.bytes);
}

static void every_mistake_can_be_made_in_the_emitted_code(void **state)
{
    const struct fixture *f = *state;
    for (int head = 0; head < HEADS; head++)
        for (int i = 0; i < MUTATIONS; i++)
            free(mutate(f, head, &mutations[i]));
}

static void every_mutant_is_refused_and_the_original_is_not(void **state)
{
    static mutant mutants[HEADS * MUTATIONS];
    const struct fixture *f = *state;
    int wrong = 0;
    if (!f->ready)
        skip();
    for (int i = 0; i < HEADS * MUTATIONS; i++) {
        mutants[i] = (mutant){.fixture = f, .head = i / MUTATIONS, .mutation = &mutations[i % MUTATIONS]};
        mutants[i].code = mutate(f, mutants[i].head, mutants[i].mutation);
    }
    parallel_run(HEADS * MUTATIONS, judge, mutants);
    for (int i = 0; i < HEADS * MUTATIONS; i++) {
        bool original = mutants[i].mutation == &mutations[0];
        print_message("%-10s %-46s %s\n", f->list.heads[mutants[i].head]->name, mutants[i].mutation->what,
                      mutants[i].status ? mutants[i].error.message : "ACCEPTED");
        wrong += mutants[i].status != (original ? FPA_OK : FPA_REFUSED);
        free(mutants[i].code);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_can_be_made_in_the_emitted_code),
        cmocka_unit_test(every_mutant_is_refused_and_the_original_is_not),
    };
    return cmocka_run_group_tests_name("cuda mutation", tests, setup, teardown);
}
