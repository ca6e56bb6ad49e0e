/* crossover: the length from which the chunked form is faster than the parallel one, predicted and measured.
 *
 *   crossover SPEC FOLDER [SECONDS]
 *
 * For each head of the spec: where the model of this machine's processor (machine/cpu.c) has the two forms' seconds
 * equal, and where measurements have; one thread, one sequence of four heads. A measurement takes SECONDS (0.1) at
 * most beside its first two calls. Writes FOLDER/crossover.tsv and FOLDER/crossover.svg; a family is what heads' names
 * have before the last '_'. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command/timing.h"
#include "gen/plan/c/work.h"
#include "heads.h"
#include "machine/cpu.h"
#include "output.h"

enum { HEADS = 4, LEAST = 4, MOST = 1 << 16, REPEATS = 25 };

typedef struct result {
    const char *head;
    double features, plan;      /* the crossover that emitted code has, by the target's default processor */
    double predicted, measured; /* tokens; 0: none up to MOST */
    double length, parallel, chunked; /* the last length measured, ns a token and head of both forms there */
} result;

/* Where two forms' seconds are compared. */
typedef struct race {
    const fpa_head *head;
    const fpa_plan *plan;             /* of the model; or */
    const fpa_kernel *kernel;         /* of measurements */
    double seconds;                   /* a measurement */
    double length, parallel, chunked; /* that was asked for last, and ns a token and head there */
} race;

static fpa_status ask_model(race *r, int form, int64_t length, double *ns)
{
    const fpa_call_size size = {
        .form = form, .batch = 1, .length = length, .query_heads = HEADS, .heads = HEADS};
    const fpa_cost cost = work_cost(r->plan, r->plan->chunk, cpu_here(r->plan->target), &size, 1);
    *ns = 1e9 * cost.seconds / (double)(length * HEADS);
    return FPA_OK;
}

static fpa_status ask_clock(race *r, int form, int64_t length, double *ns, fpa_error *error)
{
    const fpa_load load = {.form = (fpa_form)form,
                           .batch = 1,
                           .length = length,
                           .heads = HEADS,
                           .repeats = REPEATS,
                           .seconds = r->seconds};
    fpa_timing timing;
    const fpa_status status = time_forward(r->kernel, r->head, &load, &timing, error);
    *ns = timing.nanoseconds;
    return status;
}

static fpa_status ask(race *r, int form, int64_t length, double *ns, fpa_error *error)
{
    return r->plan ? ask_model(r, form, length, ns) : ask_clock(r, form, length, ns, error);
}

/* log of parallel over chunked: above 0 from the crossover on. */
static fpa_status compare(race *r, double length, double *lead, fpa_error *error)
{
    fpa_status status = ask(r, FORM_PARALLEL, (int64_t)length, &r->parallel, error);
    if (!status)
        status = ask(r, FORM_CHUNKED, (int64_t)length, &r->chunked, error);
    r->length = length;
    *lead = log(r->parallel / r->chunked);
    return status;
}

/* By quarters up or down from a guess until the lead changes sides, then between the two. *tokens 0: it does not up to
 * MOST. */
static fpa_status find_crossover(race *r, double guess, double *tokens, fpa_error *error)
{
    double at = fmin(fmax(round(guess), LEAST), MOST), lead, before, before_lead;
    fpa_status status = compare(r, at, &lead, error);
    do {
        before = at;
        before_lead = lead;
        at = round(lead > 0 ? fmin(at / 1.25, at - 1) : fmax(at * 1.25, at + 1));
        *tokens = before_lead > 0 ? before : 0;
        if (status || at < LEAST || at > MOST)
            return status;
        status = compare(r, at, &lead, error);
    } while (!status && (lead > 0) == (before_lead > 0));
    *tokens = before * pow(at / before, before_lead / (before_lead - lead));
    return status;
}

static fpa_status predict(const fpa_head *head, result *r, fpa_error *error)
{
    fpa_simplified simple;
    fpa_plan plan;
    race model = {.head = head, .plan = &plan};
    fpa_status status = simplify(head, &simple, error);
    if (status)
        return status;
    status = plan_choose(&simple, head, target_best(), &plan, error);
    if (!status) {
        r->features = (double)plan.facts.features;
        r->plan = (double)plan.facts.crossover;
        status = find_crossover(&model, r->plan > 0 ? r->plan : MOST, &r->predicted, error);
        plan_free(&plan);
    }
    simplified_free(&simple);
    return status;
}

static double seconds = 0.1; /* that each time is taken for */

static fpa_status measure(const char *spec, const fpa_head *head, void *found, fpa_error *error)
{
    result *r = found;
    fpa_kernel *kernel;
    r->head = head->name;
    fpa_status status = predict(head, r, error);
    if (!status)
        status = fpa_open(spec, head->name, NULL, &kernel, error);
    if (status)
        return status;
    race clock = {.head = head, .kernel = kernel, .seconds = seconds};
    status = find_crossover(&clock, r->predicted > 0 ? r->predicted : MOST, &r->measured, error);
    r->length = clock.length;
    r->parallel = clock.parallel;
    r->chunked = clock.chunked;
    fpa_close(kernel);
    return status;
}

/* ---- the table and the picture ---- */

static bool write_table(const char *folder, const result *results, int count)
{
    char processor[PROCESSOR_NAME];
    FILE *file = output_open(folder, "crossover.tsv");
    if (!file)
        return false;
    processor_name(processor);
    fprintf(file,
            "# %s, as %s on %s; one thread, a sequence of %d heads; make experiments\n"
            "# tokens from which the chunked form is faster; plan: as emitted code has it, by the target's "
            "default\n"
            "# processor; then ns a token and head of both forms at the last length measured\n"
            "head\tD\tplan\tpredicted\tmeasured\tlength\tparallel_ns\tchunked_ns\n",
            processor, cpu_here(target_best())->name, target_best()->name, HEADS);
    for (int i = 0; i < count; i++)
        fprintf(file, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\n", results[i].head, results[i].features,
                results[i].plan, results[i].predicted, results[i].measured, results[i].length,
                results[i].parallel, results[i].chunked);
    return output_close(file, "crossover.tsv");
}

/* Where both say the same, from the least to the most that is predicted. */
static bool add_diagonal(fpa_chart *chart, const result *results, int count)
{
    double least = MOST, most = LEAST;
    for (int i = 0; i < count; i++) {
        least = results[i].predicted > 0 ? fmin(least, results[i].predicted) : least;
        most = fmax(most, results[i].predicted);
    }
    return chart_add(chart, "as predicted", false, least, least) &&
           chart_add(chart, "as predicted", false, most, most);
}

static bool write_chart(const char *folder, const result *results, int count)
{
    char title[PROCESSOR_NAME + 32], processor[PROCESSOR_NAME], family[CHART_LABEL];
    fpa_chart chart = {.title = title, .x_label = "tokens by the model", .y_label = "tokens measured"};
    processor_name(processor);
    snprintf(title, sizeof title, "Crossover on one core of %s", processor);
    bool done = add_diagonal(&chart, results, count);
    for (int i = 0; i < count && done; i++) {
        name_family(results[i].head, family);
        if (results[i].predicted > 0 && results[i].measured > 0)
            done = chart_add(&chart, family, true, results[i].predicted, results[i].measured);
    }
    done = done && output_chart(folder, "crossover.svg", &chart);
    chart_drop(&chart);
    return done;
}

static void tell(const void *found)
{
    const result *r = found;
    printf("%-28s D %6.0f  from %6.0f tokens on by the model, %6.0f measured\n", r->head, r->features,
           r->predicted, r->measured);
}

static bool write_all(const char *folder, void *found, int count)
{
    return write_table(folder, found, count) && write_chart(folder, found, count);
}

int main(int count, char **arguments)
{
    static const head_experiment experiment = {sizeof(result), measure, tell, write_all};
    if (count > 3)
        seconds = atof(arguments[3]);
    if (count < 3 || count > 4 || !(seconds > 0)) {
        fputs("usage: crossover SPEC FOLDER [SECONDS]\n", stderr);
        return 2;
    }
    setenv("OMP_NUM_THREADS", "1", 1); /* of kernels that are opened later */
    return measure_heads(&experiment, arguments[1], arguments[2]);
}
