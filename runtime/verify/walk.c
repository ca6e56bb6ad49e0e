/* walk: picks of candidates. */
#include "walk.h"

#include <string.h>

#include "base/round.h"

/* Candidates of a call, as many as for a head of a million features. */
enum { MANY_CANDIDATES = 768 };

/* A trial of at most this many tokens is run in parts, one of which has a single token. */
enum { FEW_TOKENS = 5 };

static int list_candidates(const fpa_module *module, const fpa_call_size *size,
                           fpa_candidate list[MANY_CANDIDATES])
{
    const int count = module->candidates ? module->candidates(module, size, list, MANY_CANDIDATES) : 0;
    int kept = 0;
    for (int i = 0; i < count && i < MANY_CANDIDATES; i++)
        if (!list[i].refused)
            list[kept++] = list[i];
    return kept;
}

static bool is_of(const fpa_candidate *candidate, const char *mechanism, int variant)
{
    return candidate->variant == variant && strcmp(candidate->mechanism, mechanism) == 0;
}

static void add_pick(const fpa_candidate *candidate, bool last, int64_t most, fpa_pick picks[MANY_PICKS],
                     int *count)
{
    for (int i = 0; i < *count; i++)
        if (is_of(candidate, picks[i].mechanism, picks[i].variant) && picks[i].last == last)
            return;
    if (*count < MANY_PICKS)
        picks[(*count)++] = (fpa_pick){candidate->mechanism, candidate->variant, last, most};
}

static int find_fastest(const fpa_candidate *list, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (list[i].cost.seconds < list[best].cost.seconds)
            best = i;
    return best;
}

/* Whether calls of the size use the candidate without a pick, both with states and without, since it is the fastest of both. */
static bool is_taken(const fpa_module *module, const fpa_call_size *size, const fpa_candidate *fastest)
{
    fpa_candidate list[MANY_CANDIDATES];
    fpa_call_size plain = *size;
    plain.state_in = plain.state_out = false;
    const int candidates = list_candidates(module, &plain, list);
    const fpa_candidate *other = &list[find_fastest(list, candidates)];
    return candidates > 0 && is_of(other, fastest->mechanism, fastest->variant) &&
           other->segments == fastest->segments;
}

/* Adds the first and the last candidate of each mechanism and variant, except one that is used without a pick. */
static void add_picks(const fpa_module *module, const fpa_call_size *size, fpa_pick picks[MANY_PICKS],
                      int *count)
{
    fpa_candidate list[MANY_CANDIDATES];
    const int candidates = list_candidates(module, size, list);
    int fastest = find_fastest(list, candidates);
    if (candidates > 1 && !is_taken(module, size, &list[fastest]))
        fastest = -1;

    for (int i = 0; i < candidates; i++) {
        bool first = true, last = true;
        for (int j = 0; j < candidates; j++)
            if (j != i && is_of(&list[i], list[j].mechanism, list[j].variant))
                *(j < i ? &first : &last) = false;
        if (i != fastest && (first || last))
            add_pick(&list[i], !first, 0, picks, count);
    }
}

static fpa_call_size size_of(const fpa_shape *shape, fpa_form_index form)
{
    return (fpa_call_size){.form = form,
                           .batch = shape->batch,
                           .length = shape->length,
                           .query_heads = shape->query_heads,
                           .heads = shape->heads,
                           .state_in = true,
                           .state_out = true,
                           .joined = true};
}

bool walk_is_short(const fpa_shape *shape)
{
    return shape->length > 0 && shape->length <= FEW_TOKENS;
}

int walk_list(const fpa_module *module, const fpa_shape *shape, fpa_form_index form,
              fpa_pick picks[MANY_PICKS])
{
    fpa_call_size size = size_of(shape, form);
    int count = 0;
    add_picks(module, &size, picks, &count);
    if (form != FORM_RECURRENT || !walk_is_short(shape))
        return count;
    size.length = 1;
    add_picks(module, &size, picks, &count);
    size.recent = 1;
    if (shape->checks & CHECK_RECENT && module->decodes_recent)
        add_picks(module, &size, picks, &count);
    return count;
}

/* Segments have equal numbers of chunks, only the last one fewer: with n chunks and up to (n + 1) / 2 segments, all but the last have
 * several. */
int walk_list_segments(const fpa_module *module, const fpa_shape *shape, int chunk,
                       fpa_pick picks[MANY_PICKS])
{
    const fpa_call_size size = size_of(shape, FORM_CHUNKED);
    const int64_t chunks = divide_up(shape->length, chunk);
    fpa_candidate list[MANY_CANDIDATES];
    const int candidates = list_candidates(module, &size, list);
    int count = 0;
    for (int i = 0; i < candidates; i++)
        add_pick(&list[i], true, (chunks + 1) / 2, picks, &count);
    return count;
}

int walk_list_recent(const fpa_module *module, const fpa_shape *shape, fpa_pick picks[MANY_PICKS])
{
    fpa_call_size size = size_of(shape, FORM_RECURRENT);
    fpa_candidate list[MANY_CANDIDATES];
    int count = 0;
    size.length = 1;
    size.recent = shape->length / 3;
    const int candidates = module->decodes_recent ? list_candidates(module, &size, list) : 0;
    for (int i = 0; i < candidates && count == 0; i++)
        if (strcmp(list[i].mechanism, "decode_recent") == 0)
            add_pick(&list[i], false, 0, picks, &count);
    return count;
}

bool walk_choose(const void *choice, const fpa_module *module, const fpa_call_size *size,
                 fpa_candidate *candidate)
{
    const fpa_pick *pick = choice;
    fpa_candidate list[MANY_CANDIDATES];
    const int count = list_candidates(module, size, list);
    bool found = false;
    for (int i = 0; i < count && (pick->last || !found); i++)
        if (is_of(&list[i], pick->mechanism, pick->variant) &&
            (pick->most == 0 || list[i].segments <= pick->most)) {
            *candidate = list[i];
            found = true;
        }
    return found;
}

bool walk_has(const fpa_module *module, const fpa_shape *shape, fpa_form_index form, const char *mechanism)
{
    const fpa_call_size size = size_of(shape, form);
    fpa_candidate list[MANY_CANDIDATES];
    const int count = list_candidates(module, &size, list);
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].mechanism, mechanism) == 0)
            return true;
    return false;
}
