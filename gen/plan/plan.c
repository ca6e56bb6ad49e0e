/* The steps from a simplified head to a plan; the back end's own step is a row of gen/backends.c. */
#include "plan.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/text.h"
#include "facts.h"
#include "feature_line.h"
#include "gen/backends.h"
#include "head/lift.h"
#include "lift_head.h"

enum { MAX_DOTS = 64 };

static const double STATE_LIMIT = 2.0 * (1 << 30); /* bytes of the state of one (batch, head) */

/* The first weight of a branch's rows that float32 cannot represent; NULL: there is none. */
static const fpa_number *large_gram(const fpa_branch *branch)
{
    for (int w = 0; branch->gram && w < branch->width; w++)
        if (branch->gram[w].value > FLT_MAX)
            return &branch->gram[w];
    return NULL;
}

/* The same for all weights of the features and of the score. */
static const fpa_number *large_weight(const fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    const fpa_score *score = plan->score;
    const fpa_number *large = NULL;
    for (int t = 0; t < head->term_count && !large; t++) {
        const fpa_term *term = &head->terms[t];
        large = fabs(term->weight.value) > FLT_MAX ? &term->weight : NULL;
        for (int b = 0; b < term->branch_count && !large; b++)
            large = large_gram(&term->branches[b]);
    }
    for (int i = 0; i < score->monomial_count && !large; i++)
        large = fabs(score->monomials[i].weight.value) > FLT_MAX ? &score->monomials[i].weight : NULL;
    for (int f = 0; f < score->dot_count && !large; f++)
        large = large_gram(&score->dots[f]);
    return large;
}

static fpa_status check_limits(const fpa_plan *plan, fpa_error *error)
{
    const fpa_head *head = plan->head;
    double features = head_features(head);
    double bytes = features * (head->dv + 1) * 4;
    if (bytes > STATE_LIMIT)
        return fail(
            error, FPA_UNSUPPORTED, head->origin,
            "head '%s' has %.0f features: its state would take %.1f GiB for every batch entry and head, "
            "the limit is %.0f GiB (exact minimum: %.0f features)",
            head->name, features, bytes / (1 << 30), STATE_LIMIT / (1 << 30), plan->minimum);
    if (plan->score->dot_count > MAX_DOTS)
        return fail(error, FPA_UNSUPPORTED, head->origin,
                    "head '%s' needs %d different dot products a pair of tokens, the limit is %d: use fewer "
                    "different branches, or one dense or diagonal branch in place of several",
                    head->name, plan->score->dot_count, MAX_DOTS);
    const fpa_number *large = large_weight(plan);
    if (!large)
        return FPA_OK;
    char text[NUMBER_TEXT];
    number_print(text, *large);
    return fail(error, FPA_UNSUPPORTED, head->origin,
                "head '%s' has the weight %s, but kernels compute in float32, whose largest number is 3.4e38",
                head->name, text);
}

static fpa_status find_mechanism(fpa_plan *plan, const char *mechanism, fpa_error *error)
{
    /* the option of fpac that names a mechanism, for the message */
    static const char option[] = "--mechanism";
    const fpa_generator *generator = generator_of(plan->target);
    enum { MOST = 32 };
    const char *names[MOST + 1] = {NULL};
    plan->forced = -1;
    if (!mechanism)
        return FPA_OK;
    if (!generator->mechanism)
        return fail(error, FPA_INVALID, option, "is for CUDA targets; %s has only one mechanism",
                    plan->target->name);
    for (int i = 0; i < MOST && generator->mechanism(i); i++) {
        names[i] = generator->mechanism(i);
        if (!strcmp(names[i], mechanism))
            plan->forced = i;
    }
    return plan->forced < 0 ? fail_unknown(error, option, mechanism, "mechanism", names) : FPA_OK;
}

/* Runs a step of a back end. If an allocation in the plan's arena fails, it jumps back here, so that planners need
 * not check. */
static fpa_status run(fpa_status (*step)(fpa_plan *, fpa_error *), fpa_plan *plan, fpa_error *error)
{
    jmp_buf failure;
    fpa_status status;
    plan->memory.failure = &failure;
    if (setjmp(failure))
        status = fail_memory(error);
    else
        status = step(plan, error);
    plan->memory.failure = NULL;
    return status;
}

/* Makes the plan; start: the fields that are known already. */
static fpa_status choose(const fpa_plan *start, const fpa_simplified *simple, const char *mechanism,
                         fpa_plan *plan, fpa_error *error)
{
    const fpa_target *target = start->target;
    *plan = *start;
    plan->features = (int64_t)head_features(plan->head);
    plan->minimum = simple->minimum;
    fpa_status status = find_mechanism(plan, mechanism, error);
    if (!status)
        status = check_limits(plan, error);
    if (!status)
        status = run(generator_of(target)->plan, plan, error);
    if (!status)
        plan_facts(plan);
    else
        plan_free(plan);
    return status;
}

fpa_status plan_choose_as(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                          const char *mechanism, fpa_plan *plan, fpa_error *error)
{
    const fpa_plan start = {
        .head = simple->head, .written = written, .score = &simple->score, .target = target};
    return choose(&start, simple, mechanism, plan, error);
}

fpa_status plan_choose_pass(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                            const char *mechanism, fpa_plan *plan, fpa_error *error)
{
    const fpa_plan start = {
        .head = simple->head, .written = written, .score = &simple->score, .target = target, .pass = true};
    return choose(&start, simple, mechanism, plan, error);
}

fpa_status plan_check_backward(const fpa_head *written, const fpa_target *target, fpa_error *error)
{
    const char *missing = NULL;
    if (!generator_of(target)->backward)
        return fail(error, FPA_UNSUPPORTED, written->name, "has no gradients for %s yet; on C targets it has",
                    target->name);
    if (written->window)
        missing = "a window";
    else if (!written->causal && target->backend != BACKEND_C)
        missing = "no mask (causal = false)";
    return missing ? fail(error, FPA_UNSUPPORTED, written->name,
                          "has %s, for which gradients are not implemented yet", missing)
                   : FPA_OK;
}

/* Adds the line of made rows' features, if gradients are computed that way (feature_line.h). */
static bool add_line(const fpa_head *written, const fpa_target *target, fpa_row_head *made)
{
    const bool suits = made->width && feature_line_suits(made->simple, written, target);
    if (suits)
        made->line = feature_line_make(made->simple, &made->memory);
    return suits;
}

/* Whether gradients are passes, and on which operands: coordinates that a lift makes (not with a mask of keys, for
 * which values are copied); the head's own q and k; made rows; or features of coordinates, as a line. */
static bool find_operands(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                          fpa_row_head *made)
{
    if (written->lift && target->backend == BACKEND_CUDA) {
        lift_head_make(simple, written, made);
        return !written->lift->key_mask && passes_suit(made->simple, made->unlifted, target);
    }
    if (passes_suit(simple, written, target))
        return true;
    row_head_make(simple, target, false, made);
    if (made->width)
        return passes_suit(made->simple, written, target) || add_line(written, target, made);
    row_head_make(simple, target, true, made);
    const bool is_line = add_line(written, target, made);
    if (!is_line)
        row_head_free(made);
    return is_line;
}

fpa_status plan_operands(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                         fpa_row_head *made, bool *has_passes, fpa_error *error)
{
    jmp_buf failure;
    *made = (fpa_row_head){.memory.failure = &failure};
    if (setjmp(failure)) {
        row_head_free(made);
        return fail_memory(error);
    }
    *has_passes = find_operands(simple, written, target, made);
    made->memory.failure = NULL;
    return FPA_OK;
}

const fpa_simplified *plan_passed(const fpa_simplified *simple, const fpa_row_head *made)
{
    return made->line ? made->line : made->width ? made->simple : simple;
}

fpa_status plan_choose_backward(const fpa_simplified *simple, const fpa_head *written,
                                const fpa_target *target, fpa_plan *plan, fpa_error *error)
{
    fpa_status status = plan_check_backward(written, target, error);
    const fpa_generator *generator = generator_of(target);
    fpa_row_head made = {0};
    bool has_passes = false;
    if (!status)
        status = plan_operands(simple, written, target, &made, &has_passes, error);
    if (status)
        return status;
    const fpa_simplified *passed = plan_passed(simple, &made);
    simple = made.width ? made.simple : simple;
    const fpa_plan start = {.head = simple->head,
                            .written = made.lifted ? made.unlifted : written,
                            .score = &simple->score,
                            .target = target,
                            .packs_in_blocks = true};
    status = choose(&start, simple, generator->backward_mechanism, plan, error);
    if (status) {
        row_head_free(&made);
        return status;
    }
    plan->backward = true;
    plan->made = made;
    plan->facts.crossover = 0;
    if (has_passes)
        plan->passes = passes_rows(passed);
    plan->passes.features = made.line ? made.line->head->d : 0;
    status = run(generator->plan_backward, plan, error);
    if (status)
        plan_free(plan);
    else
        plan_backward_facts(plan);
    return status;
}

fpa_status plan_choose(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target,
                       fpa_plan *plan, fpa_error *error)
{
    return plan_choose_as(simple, written, target, NULL, plan, error);
}

void plan_free(fpa_plan *plan)
{
    free(plan->pieces);
    row_head_free(&plan->made);
    arena_free(&plan->memory);
    *plan = (fpa_plan){0};
}

char *plan_print(const fpa_plan *plan)
{
    text_buffer buffer;
    FILE *out = text_open(&buffer);
    if (!out)
        return NULL;
    generator_of(plan->target)->print(out, plan);
    return text_finish(&buffer);
}
