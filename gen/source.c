/* source: the functions of gen.h: head -> simplify -> plan -> emit, for forward kernels, passes and gradients. */
#include "gen.h"
#include "machine/target.h"

#include <stdlib.h>
#include <string.h>

#include "gen/emit/emit.h"
#include "gen/plan/plan.h"
#include "gen/simplify/simplify.h"
#include "base/plain_locale.h"
#include "embedded.h"
#include "fault.h"
#include "gen/emit/template.h"

/* Which of a head's texts is generated. */
typedef struct request {
    const char *target, *mechanism; /* mechanism NULL: the fastest one */
    bool backward;                  /* the text of its gradients */
    bool pass;                      /* the head is a pass of another head's gradients */
} request;

/* head -> simplify -> plan -> emit */
static fpa_status generate_plainly(const fpa_head *head, const request *wanted, const fpa_fault *fault,
                                   fpa_source *source, fpa_error *error)
{
    const char *target_name = wanted->target;
    const fpa_target *target = target_find(target_name);
    fpa_simplified simple = {0};
    fpa_plan plan = {0};
    *source = (fpa_source){0};
    if (!target)
        return fail(error, FPA_UNSUPPORTED, target_name, "no such target; `fpac gen --help` lists them");
    fpa_status status = simplify(head, &simple, error);
    if (status)
        return status;
    status = wanted->backward ? plan_choose_backward(&simple, head, target, &plan, error)
             : wanted->pass   ? plan_choose_pass(&simple, head, target, wanted->mechanism, &plan, error)
                              : plan_choose_as(&simple, head, target, wanted->mechanism, &plan, error);
    if (status)
        goto out;
    if ((status = emit_faulty(&plan, head, fault, &source->code, &source->header, error)))
        goto out;
    source->facts = plan.facts;
out:
    plan_free(&plan);
    simplified_free(&simple);
    return status;
}

static fpa_status generate(const fpa_head *head, request wanted, const fpa_fault *fault, fpa_source *source,
                           fpa_error *error)
{
    const locale_t before = locale_plain();
    const fpa_status status = generate_plainly(head, &wanted, fault, source, error);
    locale_restore(before);
    return status;
}

fpa_status source_generate(const fpa_head *head, const char *target_name, fpa_source *source,
                           fpa_error *error)
{
    return generate(head, (request){.target = target_name}, NULL, source, error);
}

fpa_status source_generate_as(const fpa_head *head, const char *target_name, const char *mechanism,
                              fpa_source *source, fpa_error *error)
{
    return generate(head, (request){.target = target_name, .mechanism = mechanism}, NULL, source, error);
}

fpa_status source_check_backward(const fpa_head *head, const char *target_name, fpa_error *error)
{
    const fpa_target *target = target_find(target_name);
    if (!target)
        return fail(error, FPA_UNSUPPORTED, target_name, "no such target; `fpac gen --help` lists them");
    return plan_check_backward(head, target, error);
}

fpa_status source_generate_backward(const fpa_head *head, const char *target_name, fpa_source *source,
                                    fpa_error *error)
{
    return generate(head, (request){.target = target_name, .backward = true}, NULL, source, error);
}

/* The mechanism that a pass needs; NULL: any. Only fused_rows reads numbers beside tokens and adds to an output,
 * and stores the dots and states of a gated line. Only split_outer has NAME_chunk_contraction, stores dots of
 * other gated heads, and reads rows of more elements than other heads may have. */
static const char *pass_mechanism(const fpa_head *head, fpa_pass pass)
{
    enum { WIDE = 256 };
    if (passes_by_rows(head, pass))
        return "fused_rows";
    return passes_leaves_dots(head, pass) || (pass == PASS_VALUES && passes_contract(head)) || head->d > WIDE
               ? "split_outer"
               : NULL;
}

fpa_status source_generate_pass(const fpa_head *head, const char *target_name, fpa_pass pass,
                                fpa_source *source, fpa_error *error)
{
    const request wanted = {.target = target_name, .mechanism = pass_mechanism(head, pass), .pass = true};
    return generate(head, wanted, NULL, source, error);
}

static void forget_rows(fpa_passes *passes)
{
    head_free(passes->head[PASS_ROWS]);
    passes->head[PASS_ROWS] = NULL;
    passes->own[PASS_ROWS] = false;
}

/* Whether a pass can be planned: no error. *contracts: whether its module has NAME_chunk_contraction. */
static fpa_status plan_pass(const fpa_head *head, fpa_pass pass, bool own, const fpa_target *target,
                            bool *contracts, fpa_error *error)
{
    fpa_simplified simple = {0};
    fpa_plan plan = {0};
    fpa_status status = simplify(head, &simple, error);
    if (!status && own)
        status = plan_choose(&simple, head, target, &plan, error);
    else if (!status)
        status = plan_choose_pass(&simple, head, target, pass_mechanism(head, pass), &plan, error);
    *contracts = !status && plan_contracts(&plan);
    plan_free(&plan);
    simplified_free(&simple);
    return status;
}

/* Removes passes that cannot be used: all of them if the mechanism that one of them needs does not suit it; the
 * pass of rows if the pass of values computes the gradients of q and k by contraction, in chunks, too. */
static fpa_status forget_needless(const fpa_head *head, fpa_passes *passes, const fpa_target *target,
                                  fpa_error *error)
{
    const fpa_head *rows = passes->head[PASS_ROWS], *values = passes->head[PASS_VALUES];
    fpa_status status = FPA_OK;
    fpa_error reason;
    bool contracts = false, none;
    if (passes->own[PASS_VALUES] || pass_mechanism(values, PASS_VALUES))
        status = plan_pass(values ? values : head, PASS_VALUES, !values, target, &contracts, &reason);
    if (!status && !contracts && rows && pass_mechanism(rows, PASS_ROWS))
        status = plan_pass(rows, PASS_ROWS, false, target, &none, &reason);
    if (status || (!contracts && !rows && !passes->own[PASS_ROWS]))
        passes_free(passes);
    else if (contracts && contracts_chunks(values ? values : head))
        forget_rows(passes);
    if (status == FPA_NO_MEMORY && error)
        *error = reason;
    return status == FPA_NO_MEMORY ? status : FPA_OK;
}

fpa_status source_passes(const fpa_head *head, const char *target_name, fpa_passes *passes, fpa_error *error)
{
    const fpa_target *target = target_find(target_name);
    const locale_t before = locale_plain();
    fpa_simplified simple = {0};
    fpa_row_head made = {0};
    bool suit = false;
    *passes = (fpa_passes){0};
    fpa_status status =
        target ? simplify(head, &simple, error)
               : fail(error, FPA_UNSUPPORTED, target_name, "no such target; `fpac gen --help` lists them");
    if (!status)
        status = plan_operands(&simple, head, target, &made, &suit, error);
    if (!status && suit) {
        status = passes_make(plan_passed(&simple, &made), head, made.width > 0, passes, error);
        if (!status)
            status = forget_needless(head, passes, target, error);
    }
    row_head_free(&made);
    simplified_free(&simple);
    locale_restore(before);
    return status;
}

/* ---- with a fault ---- */

static bool is_point(const char *name)
{
    for (const struct fpa_embedded_file *file = fpa_embedded_templates; file->name; file++) {
        const char *text = file->text, *point;
        size_t size;
        while ((point = template_next_point(&text, &size)))
            if (strlen(name) == size && !strncmp(name, point, size))
                return true;
    }
    return false;
}

fpa_status source_generate_faulty(const fpa_head *head, const char *target_name, const fpa_fault *fault,
                                  fpa_source *source, fpa_error *error)
{
    const request wanted = {.target = target_name,
                            .mechanism = fault->values ? pass_mechanism(head, PASS_VALUES)
                                         : fault->rows ? pass_mechanism(head, PASS_ROWS)
                                                       : NULL,
                            .backward = fault->backward,
                            .pass = fault->values || fault->rows};
    fpa_source right = {0};
    *source = (fpa_source){0};
    if (!is_point(fault->point))
        return fail(error, FPA_INVALID, fault->point, "no line of the templates is a point of that name");
    fpa_status status = fault->right ? FPA_OK : generate(head, wanted, NULL, &right, error);
    if (!status)
        status = generate(head, wanted, fault, source, error);
    if (!status && !strcmp(fault->right ? fault->right : right.code, source->code)) {
        source_free(source);
        status = fail(error, FPA_INVALID, fault->point,
                      "the fault changes nothing in what is emitted of %s for %s", head->name, target_name);
    }
    source_free(&right);
    return status;
}

void source_free(fpa_source *source)
{
    free(source->code);
    free(source->header);
    *source = (fpa_source){0};
}
