#include "explain_candidates.h"

#include <inttypes.h>
#include <stdio.h>

#include "candidates.h"
#include "command.h"
#include "gen/plan/candidates.h"

/* Whether a form is shown: the one that is wanted; if none is given, all, but the recurrent form only for one
 * token. */
static bool is_wanted(const explain_call *call, const fpa_facts *facts, int form)
{
    int named = FPA_FORM_AUTO;
    fpa_error error;
    select_form(call->form, &named, &error); /* checked before */
    return facts->forms & 1 << form &&
           (named == form || (named == FPA_FORM_AUTO && (form != FORM_RECURRENT || call->length == 1)));
}

static fpa_call_size size_of(const explain_call *call, int form)
{
    return (fpa_call_size){.form = form,
                           .batch = call->batch,
                           .length = call->length,
                           .query_heads = call->heads,
                           .heads = call->heads,
                           .state_in = call->states || form == FORM_RECURRENT,
                           .state_out = call->states || form == FORM_RECURRENT,
                           .joined = true};
}

static void print_form(const fpa_call_size *size, const fpa_candidate_list *list)
{
    printf("\n%s form, batch %" PRId64 ", %" PRId64 " heads, %" PRId64 " tokens: * is the fastest\n",
           form_name((fpa_form_index)size->form), size->batch, size->heads, size->length);
    candidates_print(size, list->list, list->count, list->fastest);
}

static void write_form(fpa_json *json, const fpa_call_size *size, const fpa_candidate_list *list)
{
    json_object(json, NULL);
    json_text(json, "form", form_name((fpa_form_index)size->form));
    json_text(json, "machine", list->machine);
    candidates_write(json, size, list->list, list->count, list->fastest);
}

/* ---- mechanisms that the plan has not chosen ---- */

static void print_alternative(const fpa_call_size *size, const fpa_alternative *other)
{
    char text[CANDIDATE_TEXT];
    if (other->why[0] || other->fastest.refused)
        printf("  %-18s %s\n", other->mechanism, other->why[0] ? other->why : other->fastest.refused);
    else
        printf("  %-18s %-34s %12.2f us %10.4f ns  %s\n", other->mechanism,
               candidate_text(text, &other->fastest), 1e6 * other->fastest.cost.seconds,
               candidate_nanoseconds(size, other->fastest.cost.seconds), other->fastest.cost.limit);
}

static void write_alternative(fpa_json *json, const fpa_call_size *size, const fpa_alternative *other)
{
    json_object(json, NULL);
    json_text(json, "mechanism", other->mechanism);
    if (other->why[0] || other->fastest.refused) {
        json_text(json, "refused", other->why[0] ? other->why : other->fastest.refused);
    } else {
        json_number(json, "seconds", other->fastest.cost.seconds);
        json_number(json, "ns_per_token_and_head", candidate_nanoseconds(size, other->fastest.cost.seconds));
        json_text(json, "limit", other->fastest.cost.limit);
    }
    json_close(json);
}

static void show_alternatives(const fpa_plan *plan, const fpa_simplified *simple, const fpa_head *written,
                              const fpa_call_size *size, fpa_machine machine, fpa_json *json)
{
    fpa_alternative other;
    int next = 0;
    if (json)
        json_array(json, "not_chosen");
    while (plan_alternative(plan, simple, written, size, machine, &next, &other)) {
        if (json)
            write_alternative(json, size, &other);
        else
            print_alternative(size, &other);
    }
    if (json)
        json_close(json);
}

/* Prints the machine for which the seconds are. */
static void print_machine(const fpa_candidate_list *list)
{
    const fpa_gpu_room *room = &list->room;
    printf("\nof %s; %s\n", list->machine,
           room->multiprocessors ? "room for a kernel's blocks by threads and "
                                   "shared memory"
                                 : "one thread");
    if (room->cluster_counts[MOST_CLUSTER])
        printf("cluster_scan: at a time %d clusters of %d blocks\n", room->cluster_counts[MOST_CLUSTER],
               MOST_CLUSTER);
    if (room->decode_resident_clusters[MOST_CLUSTER])
        printf("decode_resident: at a time %d clusters of %d blocks\n",
               room->decode_resident_clusters[MOST_CLUSTER], MOST_CLUSTER);
}

static void show_form(const fpa_call_size *size, const fpa_candidate_list *list, fpa_json *json)
{
    if (json)
        write_form(json, size, list);
    else
        print_form(size, list);
}

fpa_status explain_candidates(const fpa_plan *plan, const fpa_simplified *simple, const fpa_head *written,
                              const explain_call *call, fpa_json *json, fpa_error *error)
{
    fpa_candidate_list list = {0};
    fpa_status status = FPA_OK;
    for (int form = 0; form < FORMS && !status; form++) {
        const fpa_call_size size = size_of(call, form);
        if (!is_wanted(call, &plan->facts, form))
            continue;
        candidate_list_free(&list);
        status = plan_candidates(plan, &size, call->machine, &list, error);
        if (status)
            continue;
        show_form(&size, &list, json);
        show_alternatives(plan, simple, written, &size, call->machine, json);
        if (json)
            json_close(json); /* the form's object */
    }
    if (!status && list.machine && !json)
        print_machine(&list);
    candidate_list_free(&list);
    return status;
}
