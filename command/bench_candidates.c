#include "bench_candidates.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "candidates.h"
#include "command.h"
#include "gen/backends.h"
#include "gen/plan/candidates.h"
#include "runtime/api/open.h"
#include "runtime/kernel.h"

/* A candidate with its measured time. */
typedef struct row {
    const char *plan; /* mechanism by which the kernels are planned; "": the back end has one only */
    fpa_candidate candidate;
    double measured; /* seconds */
    bool chosen;     /* the model's choice among the candidates of its kernel */
} row;

typedef struct table {
    const bench_job *job;
    const fpa_head *head;
    fpa_call_size size;
    fpa_simplified simple;
    fpa_plan planned;
    const char *plan; /* mechanism of the plan that serves the form */
    int count, room;
    row *rows; /* those of the chosen plan come first */
} table;

/* ---- rows ---- */

static fpa_status add_row(table *t, const row *added, fpa_error *error)
{
    if (t->count == t->room) {
        const int room = 2 * t->room + 16;
        row *rows = realloc(t->rows, (size_t)room * sizeof *rows);
        if (!rows)
            return fail_memory(error);
        t->rows = rows;
        t->room = room;
    }
    t->rows[t->count++] = *added;
    return FPA_OK;
}

static void print_row(const table *t, const row *r)
{
    char text[CANDIDATE_TEXT];
    const double predicted = r->candidate.cost.seconds;
    printf("%c %-18s %-16s %-36s %12.2f %12.2f %8.2f %12.4f\n", r->chosen ? '*' : ' ', r->plan,
           r->candidate.mechanism, candidate_text(text, &r->candidate), 1e6 * predicted, 1e6 * r->measured,
           predicted / r->measured, candidate_nanoseconds(&t->size, r->measured));
    fflush(stdout);
}

static fpa_status keep_row(const table *t, const row *r, fpa_error *error)
{
    const bench_job *job = t->job;
    char text[CANDIDATE_TEXT];
    if (!job->tsv)
        return FPA_OK;
    fprintf(job->tsv, "%s\t%s\t%s\t%s\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%s\t%s\t%s\t%.9g\t%.9g\t%d\n",
            t->head->name, dtype_name(t->head->dtype), job->target->name,
            form_name((fpa_form_index)t->size.form), t->size.length, t->size.batch, t->size.heads, r->plan,
            r->candidate.mechanism, candidate_text(text, &r->candidate), r->candidate.cost.seconds,
            r->measured, r->chosen);
    return fflush(job->tsv) ? fail(error, FPA_IO, job->options->tsv, "cannot be written") : FPA_OK;
}

static void write_row(fpa_json *json, const row *r)
{
    char text[CANDIDATE_TEXT];
    json_object(json, NULL);
    json_text(json, "plan", r->plan);
    json_text(json, "mechanism", r->candidate.mechanism);
    json_text(json, "candidate", candidate_text(text, &r->candidate));
    json_number(json, "predicted_seconds", r->candidate.cost.seconds);
    json_text(json, "limit", r->candidate.cost.limit);
    json_number(json, "measured_seconds", r->measured);
    json_bool(json, "chosen", r->chosen);
    json_close(json);
}

/* ---- kernels ---- */

static fpa_status open_as(const table *t, const char *mechanism, fpa_kernel **kernel, fpa_error *error)
{
    fpa_head *copy = NULL;
    fpa_status status = head_copy(t->head, &copy, error);
    progress("opening %s%s%s", t->head->name, mechanism ? " by " : "", mechanism ? mechanism : "");
    if (!status)
        status = open_parsed_head_as(copy, mechanism, t->job->open_options, kernel, error);
    progress_end();
    return status;
}

/* Times a candidate; if the list has one only, the module chooses. */
static fpa_status time_candidate(table *t, const fpa_kernel *kernel, row *r, fpa_error *error)
{
    fpa_load load = *t->job->load;
    fpa_timing timing;
    char text[CANDIDATE_TEXT];
    load.form = (fpa_form)t->size.form;
    load.candidate = kernel->module.candidates ? &r->candidate : NULL;
    progress("measuring %s: %s %s", t->head->name, r->candidate.mechanism,
             candidate_text(text, &r->candidate));
    fpa_status status = time_forward(kernel, kernel->head, &load, &timing, error);
    progress_end();
    if (status)
        return status;
    r->measured = timing.seconds;
    if (!t->job->options->json)
        print_row(t, r);
    status = keep_row(t, r, error);
    return status ? status : add_row(t, r, error);
}

/* Lists the module's candidates for a call of the size; malloc'ed. */
static fpa_status list_suited(const fpa_module *module, const fpa_call_size *size, fpa_candidate **list,
                              int *count, int *fastest, fpa_error *error)
{
    const int all = module->candidates(module, size, NULL, 0);
    fpa_candidate *found = calloc((size_t)all + 1, sizeof *found);
    *list = found;
    *count = 0;
    *fastest = -1;
    if (!found)
        return fail_memory(error);
    module->candidates(module, size, found, all);
    for (int i = 0; i < all; i++) {
        if (found[i].refused)
            continue;
        if (*fastest < 0 || found[i].cost.seconds < found[*fastest].cost.seconds)
            *fastest = *count;
        found[(*count)++] = found[i];
    }
    return FPA_OK;
}

/* Times all candidates, or only the one that is fastest by the model. */
static fpa_status time_module(table *t, const fpa_kernel *kernel, const char *plan, bool all,
                              fpa_error *error)
{
    fpa_candidate *list;
    int count, fastest;
    fpa_status status = list_suited(&kernel->module, &t->size, &list, &count, &fastest, error);
    for (int i = 0; i < count && !status; i++) {
        row r = {.plan = plan, .candidate = list[i], .chosen = i == fastest && all};
        if (all || i == fastest)
            status = time_candidate(t, kernel, &r, error);
    }
    free(list);
    return status;
}

/* ---- mechanisms by which kernels are planned ---- */

static bool is_split(int mechanism)
{
    return mechanism == SPLIT_PANEL || mechanism == SPLIT_OUTER;
}

/* Whether a mechanism can serve the form. */
static bool plans_form(const table *t, int mechanism)
{
    return t->size.form == FORM_CHUNKED || (t->size.form == FORM_PARALLEL && is_split(mechanism));
}

/* The mechanism that serves the form: a fused one or split; "": there is no choice. */
static const char *planned_by(const table *t, const fpa_plan *plan)
{
    const fpa_generator *generator = generator_of(t->job->target);
    const char *name = "";
    for (int m = 0; m < PLANNED_MECHANISMS && generator->mechanism; m++)
        if (plan->cuda.chosen[m] && plans_form(t, m) && (!is_split(m) || !*name))
            name = generator->mechanism(m);
    return name;
}

static fpa_status make_plan(table *t, fpa_error *error)
{
    fpa_status status = simplify(t->head, &t->simple, error);
    if (!status)
        status = plan_choose(&t->simple, t->head, t->job->target, &t->planned, error);
    return status;
}

/* Times another mechanism; if it does not suit the head, prints the reason. */
static fpa_status time_alternative(table *t, const char *mechanism, fpa_error *error)
{
    fpa_kernel *kernel = NULL;
    fpa_status status = open_as(t, mechanism, &kernel, error);
    if (status == FPA_UNSUPPORTED) {
        if (!t->job->options->json)
            printf("  %-18s %s\n", mechanism, error->message);
        return FPA_OK;
    }
    if (!status)
        status = time_module(t, kernel, mechanism, false, error);
    fpa_close(kernel);
    return status;
}

static fpa_status time_alternatives(table *t, fpa_error *error)
{
    const fpa_generator *generator = generator_of(t->job->target);
    fpa_status status = FPA_OK;
    if (!*t->plan)
        return FPA_OK;
    for (int m = 0; m < PLANNED_MECHANISMS && !status; m++) {
        const char *name = generator->mechanism(m);
        if (plans_form(t, m) && strcmp(name, t->plan) != 0)
            status = time_alternative(t, name, error);
    }
    return status;
}

/* ---- forms, if each has one candidate ---- */

int bench_threads(void)
{
    const char *given = getenv("OMP_NUM_THREADS"); /* set by --threads */
    const long count = given ? strtol(given, NULL, 10) : sysconf(_SC_NPROCESSORS_ONLN);
    return count > 1 && count < 4096 ? (int)count : 1;
}

static fpa_status time_form(table *t, const fpa_kernel *kernel, bool chosen, fpa_error *error)
{
    fpa_candidate_list list;
    fpa_status status =
        plan_candidates(&t->planned, &t->size, (fpa_machine){.threads = bench_threads()}, &list, error);
    if (!status && list.fastest < 0)
        status = fail(error, FPA_UNSUPPORTED, t->head->name, "has no candidate of the %s form",
                      form_name((fpa_form_index)t->size.form));
    if (!status) {
        row r = {.plan = "", .candidate = list.list[list.fastest], .chosen = chosen};
        status = time_candidate(t, kernel, &r, error);
    }
    candidate_list_free(&list);
    return status;
}

/* Times the form that is wanted; for AUTO both forms for whole sequences, between which AUTO chooses. */
static fpa_status time_forms(table *t, const fpa_kernel *kernel, fpa_error *error)
{
    const int chosen = t->size.form;
    fpa_status status = FPA_OK;
    for (int form = 0; form < FORMS && !status; form++) {
        const bool asked = t->job->load->form == FPA_FORM_AUTO ? form != FORM_RECURRENT : form == chosen;
        t->size.form = form;
        t->size.state_in = t->size.state_out = form == FORM_RECURRENT;
        if (asked && kernel->facts.forms & 1 << form)
            status = time_form(t, kernel, form == chosen, error);
    }
    t->size.form = chosen;
    return status;
}

/* ---- regret ---- */

/* The time of the chosen candidate divided by the least of rows [0, end), minus 1. */
static double regret_of(const table *t, int end)
{
    double chosen = 0, least = 0;
    for (int i = 0; i < end; i++) {
        if (t->rows[i].chosen)
            chosen = t->rows[i].measured;
        if (i == 0 || t->rows[i].measured < least)
            least = t->rows[i].measured;
    }
    return chosen / least - 1;
}

static void show(const table *t, int own)
{
    const bench_job *job = t->job;
    if (!job->options->json) {
        printf("regret of %s: the choice takes %.1f %% longer than the fastest of its own candidates, %.1f "
               "%% than the fastest of all\n",
               t->head->name, 100 * regret_of(t, own), 100 * regret_of(t, t->count));
        return;
    }
    json_object(job->json, NULL);
    json_text(job->json, "head", t->head->name);
    json_text(job->json, "target", job->target->name);
    json_text(job->json, "form", form_name((fpa_form_index)t->size.form));
    json_array(job->json, "candidates");
    for (int i = 0; i < t->count; i++)
        write_row(job->json, &t->rows[i]);
    json_close(job->json);
    json_number(job->json, "regret_of_launch", regret_of(t, own));
    json_number(job->json, "regret", regret_of(t, t->count));
    json_close(job->json);
}

static void print_title(const table *t)
{
    printf("\n%s %s, %s, %s form, batch %" PRId64 ", %" PRId64 " heads, %" PRId64
           " tokens: * is what is chosen\n",
           t->head->name, dtype_name(t->head->dtype), t->job->target->name,
           form_name((fpa_form_index)t->size.form), t->size.batch, t->size.heads, t->size.length);
    printf("  %-18s %-16s %-36s %12s %12s %8s %12s\n", "plan", "mechanism", "", "predicted us", "measured us",
           "ratio", "ns/token");
}

static fpa_call_size size_of(const fpa_load *load, const fpa_kernel *kernel)
{
    const bool decodes = load->length == 1 && kernel->module.backend->memory;
    const fpa_form form =
        load->form == FPA_FORM_AUTO ? fpa_choose_form(kernel, load->length, decodes) : load->form;
    return (fpa_call_size){.form = (int)form,
                           .batch = load->batch,
                           .length = load->length,
                           .query_heads = load->heads,
                           .heads = load->heads,
                           .state_in = form == FPA_FORM_RECURRENT,
                           .state_out = form == FPA_FORM_RECURRENT,
                           .joined = true};
}

/* *own: the number of rows of the chosen plan. */
static fpa_status time_all(table *t, const fpa_kernel *kernel, int *own, fpa_error *error)
{
    fpa_status status;
    t->plan = planned_by(t, &t->planned);
    status = kernel->module.candidates ? time_module(t, kernel, t->plan, true, error)
                                       : time_forms(t, kernel, error);
    *own = t->count;
    return status ? status : time_alternatives(t, error);
}

/* The cost of the module's choice; if it has one candidate only, that of the plan. */
static fpa_status ask_module(table *t, const fpa_kernel *kernel, fpa_cost *cost, fpa_error *error)
{
    fpa_candidate *list;
    int count, fastest;
    fpa_status status = list_suited(&kernel->module, &t->size, &list, &count, &fastest, error);
    if (!status && fastest >= 0)
        *cost = list[fastest].cost;
    free(list);
    return status;
}

static fpa_status ask_plan(table *t, fpa_cost *cost, fpa_error *error)
{
    fpa_candidate_list list;
    fpa_status status = make_plan(t, error);
    if (!status)
        status =
            plan_candidates(&t->planned, &t->size, (fpa_machine){.threads = bench_threads()}, &list, error);
    if (!status && list.fastest >= 0)
        *cost = list.list[list.fastest].cost;
    if (!status)
        candidate_list_free(&list);
    plan_free(&t->planned);
    simplified_free(&t->simple);
    return status;
}

fpa_status bench_predict(const bench_job *job, const fpa_kernel *kernel, fpa_cost *cost, fpa_error *error)
{
    table t = {.job = job, .head = kernel->head, .size = size_of(job->load, kernel)};
    *cost = (fpa_cost){0, "-"};
    return kernel->module.candidates ? ask_module(&t, kernel, cost, error) : ask_plan(&t, cost, error);
}

fpa_status bench_candidates(const bench_job *job, const fpa_head *head, fpa_error *error)
{
    table t = {.job = job, .head = head, .plan = ""};
    fpa_kernel *kernel = NULL;
    int own = 0;
    fpa_status status = make_plan(&t, error);
    if (!status)
        status = open_as(&t, NULL, &kernel, error);
    if (!status) {
        t.size = size_of(job->load, kernel);
        if (!job->options->json)
            print_title(&t);
        status = time_all(&t, kernel, &own, error);
    }
    if (!status)
        show(&t, own);
    fpa_close(kernel);
    plan_free(&t.planned);
    simplified_free(&t.simple);
    free(t.rows);
    return status;
}

/* ---- lines ---- */

static const char fields[] = "# head\tdtype\ttarget\tform\tlength\tbatch\theads\tplan\tmechanism\tcandidate\t"
                             "predicted_seconds\tmeasured_seconds\tchosen\n";

fpa_status candidates_open(const char *path, FILE **file, fpa_error *error)
{
    char first[sizeof fields] = "";
    *file = fopen(path, "a+");
    if (!*file)
        return fail(error, FPA_IO, path, "cannot be written");
    rewind(*file);
    const bool empty = !fgets(first, sizeof first, *file);
    if (empty ? fputs(fields, *file) >= 0 : strcmp(first, fields) == 0)
        return FPA_OK;
    fclose(*file);
    *file = NULL;
    return fail(error, FPA_INVALID, path, "is no list of candidates: name a new file");
}
