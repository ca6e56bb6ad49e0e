/* explain: shows a head as written, what it becomes, and its cost. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "head/lift.h"
#include "base/clock.h"
#include "gen/emit/emit.h"
#include "gen/plan/plan.h"
#include "gen/simplify/simplify.h"
#include "command.h"
#include "explain_candidates.h"
#include "explain_head.h"
#include "explain_symmetry.h"
#include "explain_lift.h"
#include "json.h"
#include "options.h"
#include "plain_text.h"
#include "show_layer.h"

typedef struct explain_options {
    const char *head, *target, *dtype, *mechanism, *dump;
    explain_call call; /* the call whose candidates are wanted; length 0: none */
    bool json, backward;
} explain_options;

/* The results of all stages for one head. */
typedef struct stages {
    const fpa_head *written;
    fpa_simplified simple;
    fpa_plan plan;
} stages;

static fpa_status make_stages(const fpa_head *head, const fpa_target *target, const explain_options *options,
                              stages *all, fpa_error *error)
{
    const double begin = clock_seconds();
    all->written = head;
    progress("simplifying %s", head->name);
    fpa_status status = simplify(head, &all->simple, error);
    if (status)
        return status;
    const double simplified = clock_seconds();
    progress("planning %s for %s", head->name, target->name);
    status = options->backward
                 ? plan_choose_backward(&all->simple, head, target, &all->plan, error)
                 : plan_choose_as(&all->simple, head, target, options->mechanism, &all->plan, error);
    if (status)
        simplified_free(&all->simple);
    progress_end();
    if (!status && *verbose_flag())
        note("%s: simplified in %.3f s, planned for %s in %.3f s", head->name, simplified - begin,
             target->name, clock_seconds() - simplified);
    return status;
}

static void free_stages(stages *all)
{
    plan_free(&all->plan);
    simplified_free(&all->simple);
}

static void print_notes(const fpa_simplified *simple)
{
    printf("\nsimplifications\n");
    if (simple->note_count == 0)
        printf("  none applied\n");
    for (int i = 0; i < simple->note_count; i++)
        printf("  %s\n", simple->notes[i]);
    for (int i = 0; i < simple->warning_count; i++)
        printf("  warning: %s\n", simple->warnings[i]);
}

/* Prints a count with all its digits, as long as a double represents them. */
static void print_ratio(const char *label, int64_t features, double other, const char *what)
{
    printf(other < 1e15 ? "  %-15s %12.0f" : "  %-15s %12.5g", label, other);
    if (other > 0)
        printf("   D is %.3f x this%s", (double)features / other, what);
    putchar('\n');
}

static void print_features(const fpa_head *written, const fpa_facts *facts)
{
    char size[SIZE_TEXT];
    printf("\nfeatures (rows of the state)\n  %-15s %12" PRId64, "D", facts->features);
    printf("   blocks of %d\n", facts->block);
    print_ratio("as written", facts->features, (double)facts->features_written, "");
    print_ratio("exact minimum", facts->features, (double)facts->features_minimum,
                ", the fewest known: blocks of 1, or all monomials");
    print_ratio("TPOW", facts->features, head_features_tpow(written), "");
    printf("  %-15s %12s   one (batch, head)\n", "state", size_text(size, facts->state_bytes));
}

static void print_costs(const fpa_facts *facts)
{
    static const char *const units[FORMS] = {"FLOP per visible pair", "FLOP per token", "FLOP per token"};
    printf("\nforms (cost of one head, on %s)\n", facts->target);
    for (int form = 0; form < FORMS; form++) {
        if (facts->forms & 1 << form)
            printf("  %-15s %12.0f   %s\n", form_name(form), facts->flop[form], units[form]);
        else
            printf("  %-15s %12s\n", form_name(form), "not emitted");
    }
    if (facts->crossover > 0)
        printf("  %-15s %12" PRId64 "   tokens: chunked is cheaper from here on\n", "crossover",
               facts->crossover);
    else
        printf("  %-15s %12s   parallel is the cheapest at every length\n", "crossover", "none");
}

/* Whether a line of the plan's text repeats what was printed before, or belongs to a long table. */
static bool is_repeated(const char *line)
{
    static const char *const words[] = {"parallel ", "chunked ", "recurrent ", "crossover ", "tile "};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (!strncmp(line, words[i], strlen(words[i])))
            return true;
    }
    return false;
}

static void print_plan(const char *text)
{
    printf("\nplan (each tile: --dump plan)\n");
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        if (!is_repeated(line))
            printf("  %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

/* Prints the cost of gradients, or why there are none. */
static fpa_status print_backward(const stages *all, fpa_error *error)
{
    fpa_plan plan;
    if (all->plan.backward)
        return FPA_OK;
    const fpa_status status =
        plan_choose_backward(&all->simple, all->written, all->plan.target, &plan, error);
    if (status == FPA_UNSUPPORTED)
        printf("  %-15s %12s   it %s\n", "gradients", "none", error->message);
    if (status)
        return status == FPA_UNSUPPORTED ? FPA_OK : status;
    printf("  %-15s %12.0f   FLOP per token, chunked; %.0f per visible pair, parallel\n", "gradients",
           plan.facts.flop[FORM_CHUNKED], plan.facts.flop[FORM_PARALLEL]);
    plan_free(&plan);
    return FPA_OK;
}

static fpa_status print_explanation(const stages *all, const explain_options *options, fpa_error *error)
{
    char *plan = plan_print(&all->plan);
    if (!plan)
        return fail_memory(error);
    explain_head_print(all->written);
    print_notes(&all->simple);
    print_features(all->written, &all->plan.facts);
    fpa_status status = explain_symmetry(all->written, &all->simple, NULL, error);
    print_costs(&all->plan.facts);
    if (!status)
        status = print_backward(all, error);
    print_plan(plan);
    free(plan);
    return !status && options->call.length
               ? explain_candidates(&all->plan, &all->simple, all->written, &options->call, NULL, error)
               : status;
}

static void write_costs(fpa_json *json, const fpa_facts *facts)
{
    json_object(json, "flop");
    for (int form = 0; form < FORMS; form++) {
        if (facts->forms & 1 << form)
            json_number(json, form_name(form), facts->flop[form]);
    }
    json_close(json);
    json_integer(json, "crossover", facts->crossover);
}

static fpa_status write_json(fpa_json *json, const stages *all, const explain_options *options,
                             fpa_error *error)
{
    fpa_status status = FPA_OK;
    const fpa_facts *facts = &all->plan.facts;
    json_object(json, NULL);
    json_text(json, "head", all->written->name);
    json_text(json, "origin", all->written->origin);
    json_text(json, "target", facts->target);
    json_integer(json, "d", head_width(all->written));
    json_integer(json, "coordinates", all->written->d);
    json_integer(json, "positions", all->written->lift ? all->written->lift->positions : 0);
    json_bool(json, "key_mask", all->written->lift && all->written->lift->key_mask);
    json_integer(json, "dv", all->written->dv);
    json_integer(json, "degree", head_degree(all->written));
    json_integer(json, "terms", all->written->term_count);
    json_integer(json, "features", facts->features);
    json_integer(json, "features_written", facts->features_written);
    json_integer(json, "features_minimum", facts->features_minimum);
    json_number(json, "features_tpow", head_features_tpow(all->written));
    json_integer(json, "state_elements", facts->state_elements);
    json_number(json, "state_bytes", facts->state_bytes);
    json_integer(json, "block", facts->block);
    json_integer(json, "chunk", facts->chunk);
    if (all->written->window)
        json_integer(json, "window", all->written->window);
    write_costs(json, facts);
    explain_lift_write(json, all->written);
    json_array(json, "notes");
    for (int i = 0; i < all->written->note_count; i++)
        json_text(json, NULL, all->written->notes[i]);
    json_close(json);
    json_array(json, "simplifications");
    for (int i = 0; i < all->simple.note_count; i++)
        json_text(json, NULL, all->simple.notes[i]);
    json_close(json);
    json_array(json, "warnings");
    for (int i = 0; i < all->simple.warning_count; i++)
        json_text(json, NULL, all->simple.warnings[i]);
    json_close(json);
    status = explain_symmetry(all->written, &all->simple, json, error);
    if (!status && options->call.length) {
        json_array(json, "calls");
        status = explain_candidates(&all->plan, &all->simple, all->written, &options->call, json, error);
        json_close(json);
    }
    json_close(json);
    return status;
}

static char *dump_source(const stages *all, fpa_error *error)
{
    char *code, *header;
    if (emit_source(&all->plan, all->written, &code, &header, error))
        return NULL;
    free(header); /* NULL for CUDA kernels */
    return code;
}

/* Prints the text of one stage. */
static fpa_status dump_stage(const stages *all, const char *stage, fpa_error *error)
{
    char *text = NULL;
    fail_memory(error);
    if (!strcmp(stage, "head"))
        text = head_print(all->written);
    else if (!strcmp(stage, "simplified"))
        text = simplified_print(&all->simple);
    else if (!strcmp(stage, "plan"))
        text = plan_print(&all->plan);
    else
        text = dump_source(all, error);
    if (!text)
        return error->code;
    fputs(text, stdout);
    free(text);
    return FPA_OK;
}

static bool known_stage(const char *stage)
{
    static const char *const names[] = {"head", "simplified", "plan", "source"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(stage, names[i]))
            return true;
    }
    return false;
}

static fpa_status explain_head(const fpa_head *head, const fpa_target *target, const explain_options *options,
                               fpa_json *json, fpa_error *error)
{
    stages all;
    fpa_status status = make_stages(head, target, options, &all, error);
    if (status)
        return status;
    if (options->dump)
        status = dump_stage(&all, options->dump, error);
    else if (options->json)
        status = write_json(json, &all, options, error);
    else
        status = print_explanation(&all, options, error);
    free_stages(&all);
    return status;
}

/* Explains the heads of a spec. One that the target cannot serve does not stop the others: *code becomes its exit
 * code. */
static fpa_status explain_spec(const char *spec, explain_options *options, int *code, fpa_error *error)
{
    fpa_head_list list = {0};
    const fpa_target *target;
    int first, end;
    fpa_json json = {.out = stdout};
    fpa_status status = select_target(options->target, &target, error);
    if (!status)
        status = select_gpu(options->call.gpu_name, target, &options->call.machine.gpu, error);
    if (!status)
        status = select_with_layers(spec, options->head, options->dtype, &list, &first, &end, error);
    if (status)
        return status;
    if (options->json)
        json_array(&json, NULL);
    const bool whole = first == end; /* the name is a layer's: its heads are explained */
    bool more = false;
    for (int i = whole ? 0 : first; i < (whole ? list.count : end) && !status; i++) {
        if (whole && !is_of_layer(&list, options->head, i))
            continue;
        if (more && !options->json)
            putchar('\n');
        more = true;
        status = explain_head(list.heads[i], target, options, &json, error);
        if (status == FPA_UNSUPPORTED && end - first != 1) {
            *code = report(error);
            status = FPA_OK;
        }
    }
    if (!status && !options->dump)
        show_layers(&list, options->head, options->json ? &json : NULL);
    if (options->json)
        json_close(&json);
    head_list_free(&list);
    return status;
}

/* The name of an option that needs --length, if it was given without; NULL: none. */
static const char *needs_length(const explain_options *options)
{
    if (options->call.length)
        return NULL;
    return options->call.batch    ? "--batch"
           : options->call.heads  ? "--heads"
           : options->call.form   ? "--form"
           : options->call.states ? "--states"
                                  : NULL;
}

/* Sets the default sizes of a call. */
static void fill_call(explain_options *options)
{
    if (!options->call.form)
        options->call.form = "auto";
    if (!options->call.batch)
        options->call.batch = 1;
    if (!options->call.heads)
        options->call.heads = 1;
}

static int explain_as(explain_options *options, const char *spec, const fpa_syntax *syntax)
{
    fpa_error error;
    int form, code = EXIT_OK;
    if (options->dump && !known_stage(options->dump)) {
        fail(&error, FPA_INVALID, "--dump", "%s is no stage; there are head, simplified, plan, source",
             options->dump);
        return report(&error);
    }
    if (options->backward && (options->mechanism || options->call.length))
        return option_conflict(syntax, "--backward", options->mechanism ? "--mechanism" : "--length");
    if (needs_length(options))
        return option_needs(syntax, needs_length(options), "--length");
    fill_call(options);
    if (select_form(options->call.form, &form, &error))
        return report(&error);
    if (explain_spec(spec, options, &code, &error))
        return report(&error);
    return finish_output(code);
}

int command_explain(int count, char **arguments)
{
    explain_options options = {.call = {.machine.threads = 1}};
    const fpa_option table[] = {
        {"--head", OPTION_TEXT, &options.head, "NAME", "only this head, or layer, of the file", 0, 0},
        {"--target", OPTION_TEXT, &options.target, "TARGET",
         "plan for c[:ISA] or cuda:sm_NN (fpac list); c: the best here", 0, 0},
        {"--dtype", OPTION_TEXT, &options.dtype, "DTYPE", dtype_help, 0, 0},
        {"--mechanism", OPTION_TEXT, &options.mechanism, "NAME",
         "plan CUDA kernels with this mechanism, even if another one is faster", 0, 0},
        {"--dump", OPTION_TEXT, &options.dump, "STAGE", "print only the head, simplified, plan or source", 0,
         0},
        {"--backward", OPTION_FLAG, &options.backward, NULL, "plan and source of the gradients", 0, 0},
        {"--length", OPTION_COUNT, &options.call.length, "N", "candidates of a call of N tokens", 1,
         (int64_t)1 << 32},
        {"--batch", OPTION_COUNT, &options.call.batch, "N", "--length: sequences (1)", 1, 1 << 20},
        {"--heads", OPTION_COUNT, &options.call.heads, "N", "--length: heads of q, k, v and o (1)", 1,
         1 << 16},
        {"--form", OPTION_TEXT, &options.call.form, "FORM",
         "--length: parallel, chunked or recurrent (auto: all)", 0, 0},
        {"--states", OPTION_FLAG, &options.call.states, NULL, "--length: with an initial and a final state",
         0, 0},
        {"--gpu", OPTION_TEXT, &options.call.gpu_name, "GPU",
         "--length: h200, h100, a100 ... (the target's usual GPU)", 0, 0},
        {"--json", OPTION_FLAG, &options.json, NULL, "print JSON: an array of heads", 0, 0},
        OPTION_VERBOSE,
    };
    const fpa_syntax syntax = {
        "explain SPEC [--head NAME] [--target TARGET] [--dtype DTYPE] [--mechanism NAME] [--dump STAGE] "
        "[--backward] [--length N] [--batch N] [--heads N] [--form FORM] [--states] [--gpu GPU] "
        "[--json] [--verbose]",
        "Show each head of a spec: its terms, what they simplify to and why, the number of features D "
        "beside\n"
        "the exact minimum and that of TPOW, the state's size, the symmetry group (rotations of q and k "
        "that\n"
        "do not change the kernel), the cost of each form and the plan for a target. With --length: every\n"
        "mechanism that can compute a call of that size, with its time and its limit by the cost model, or\n"
        "the reason why it cannot.",
        OPTION_TABLE(table),
        1,
        1,
        NULL};
    fpa_texts operands;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    return explain_as(&options, operands.text[0], &syntax);
}
