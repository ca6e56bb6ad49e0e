#include "plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_TILES_PRINTED = 64 };

static void print_sizes(FILE *out, const fpa_plan *plan)
{
    const fpa_facts *facts = &plan->facts;
    fprintf(out, "target      %s: %d floats a vector, %d registers\n", plan->target->name,
            plan->target->vector, plan->target->registers);
    fprintf(out, "features    %" PRId64 ", %s\n", plan->features,
            plan->unrolled ? "each a line of code" : "formed by a table of pieces (too many to print each)");
    fprintf(out, "rows        %d a token: %d coordinates, the row of ones, %d projected, %d weighted\n",
            plan->row_count, plan->head->d, plan->row_count - plan->head->d - 1 - plan->weighted_count,
            plan->weighted_count);
    fprintf(out, "tiles       %d of at most %d features, in %d slices that threads share\n", plan->tile_count,
            plan->tile_features, plan->slice_count);
    fprintf(out, "panel       %d tokens; register tile %d rows x %d vectors\n", plan->tokens,
            plan->micro_rows, plan->micro_vectors);
    fprintf(out, "chunk       %d tokens%s\n", plan->chunk, plan->head->chunk ? " (as the spec says)" : "");
    fprintf(out, "state       %" PRId64 " elements, %.0f bytes a batch entry and head\n",
            facts->state_elements, facts->state_bytes);
    for (int form = 0; form < FORMS; form++)
        if (facts->forms & 1 << form)
            fprintf(out, "%-11s %.0f FLOP and %.*f bytes a %s\n", form_name(form), facts->flop[form],
                    form == FORM_PARALLEL, plan->bytes[form],
                    form == FORM_PARALLEL ? "visible pair" : "token");
    fprintf(out, "code        about %.0f KiB\n", plan->code_bytes / 1024);
    if (facts->crossover)
        fprintf(out, "crossover   chunked is cheaper from %" PRId64 " tokens on\n", facts->crossover);
}

static void print_score(FILE *out, const fpa_plan *plan)
{
    fprintf(out, "score       %d dot product%s of", plan->score->dot_count,
            plan->score->dot_count == 1 ? "" : "s");
    for (int i = 0; i < plan->score->dot_count; i++)
        fprintf(out, " %d", plan->dots[i].row_count);
    fprintf(out, " rows, %d monomial%s\n", plan->score->monomial_count,
            plan->score->monomial_count == 1 ? "" : "s");
}

static void print_tiles(FILE *out, const fpa_plan *plan)
{
    for (int i = 0; i < plan->tile_count && i < MAX_TILES_PRINTED; i++) {
        const fpa_tile *tile = &plan->tiles[i];
        fprintf(out, "tile %-6d features %" PRId64 "..%" PRId64 ", %d pieces\n", i, tile->feature,
                tile->feature + tile->features - 1, tile->piece_count);
    }
    if (plan->tile_count > MAX_TILES_PRINTED)
        fprintf(out, "... %d more tiles\n", plan->tile_count - MAX_TILES_PRINTED);
}

char *plan_print(const fpa_plan *plan)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    print_sizes(out, plan);
    print_score(out, plan);
    print_tiles(out, plan);
    bool written = !ferror(out);
    if (fclose(out) || !written) {
        free(text);
        return NULL;
    }
    return text;
}
