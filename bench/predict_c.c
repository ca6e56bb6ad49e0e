/* What the model of CPUs predicts for a call of a C kernel on this machine: bench/predict.py compares it with
 * measurements.
 *
 * predict_c SPEC HEAD TARGET FORM LENGTH BATCH HEADS THREADS: ns a token and head, what limits them; then each part. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/gen.h"
#include "gen/plan/c/work.h"
#include "gen/spec/spec.h"

static void print_parts(const fpa_cpu *cpu, const fpa_cpu_work *work, double tokens)
{
    const double ns = 1e9 / cpu->clock / tokens;
    printf("# %s\n", cpu->name);
    for (int i = 0; i < work->loop_count; i++) {
        const fpa_cpu_loop *loop = &work->loop[i];
        printf("# %-20s %10.2f ns  %12.3f runs a token of %.1f steps\n", loop->name,
               ns * cpu_loop_cycles(cpu, loop), loop->runs / tokens, loop->steps);
    }
    for (int i = 0; i < work->data_count; i++)
        printf("# %-20s %10.2f ns  %.0f bytes a token, set of %.0f\n", work->data[i].name,
               ns * cpu_data_cycles(cpu, &work->data[i], work->threads),
               (work->data[i].read + work->data[i].written) / tokens, work->data[i].set);
}

static void print_cost(const fpa_plan *plan, const fpa_call_size *size, int threads)
{
    const fpa_cpu *cpu = cpu_here(plan->target);
    const double tokens = (double)(size->batch * size->heads * size->length);
    fpa_cpu_work work;
    work_of_call(plan, plan->chunk, size, threads, &work);
    const fpa_cost cost = cpu_cost(cpu, &work);
    printf("%.3f\t%s\n", 1e9 * cost.seconds / tokens, cost.limit);
    print_parts(cpu, &work, tokens);
}

static int form_of(const char *name)
{
    int form = 0;
    while (form < FORMS && strcmp(form_name((fpa_form_index)form), name) != 0)
        form++;
    return form;
}

static int predict(const fpa_head *head, char **argument, fpa_error *error)
{
    const int64_t heads = atoll(argument[7]);
    const fpa_call_size size = {.form = form_of(argument[4]),
                                .length = atoll(argument[5]),
                                .batch = atoll(argument[6]),
                                .query_heads = heads,
                                .heads = heads};
    fpa_simplified simple;
    fpa_plan plan;
    if (simplify(head, &simple, error))
        return 1;
    int code = plan_choose(&simple, head, target_find(argument[3]), &plan, error) ? 1 : 0;
    if (!code) {
        print_cost(&plan, &size, atoi(argument[8]));
        plan_free(&plan);
    }
    simplified_free(&simple);
    return code;
}

int main(int count, char **argument)
{
    fpa_head_list list = {0};
    const fpa_head *head;
    fpa_error error = {0};
    if (count != 9 || !target_find(argument[3]) || form_of(argument[4]) == FORMS) {
        fprintf(stderr, "usage: predict_c SPEC HEAD TARGET FORM LENGTH BATCH HEADS THREADS\n");
        return 2;
    }
    int code = spec_load(argument[1], &list, &error) ||
               head_list_find(&list, argument[2], argument[1], &head, &error) ||
               predict(head, argument, &error);
    if (code)
        fprintf(stderr, "%s: %s\n", error.where, error.message);
    head_list_free(&list);
    return code;
}
