/* print: the C back end's lines of --dump=plan. */
#include <inttypes.h>
#include <stdio.h>

#include "gen/plan/facts.h"

enum { MAX_TILES_PRINTED = 64 };

static void print_sizes(FILE *out, const fpa_plan *plan)
{
    const fpa_c_plan *c = &plan->c;
    fprintf(out, "target       %s: %d floats a vector, %d registers\n", plan->target->name,
            plan->target->vector, plan->target->registers);
    fprintf(out, "features     %" PRId64 ", %s\n", plan->features,
            c->unrolled ? "each a line of code" : "formed by a table of pieces (too many to print each)");
    fprintf(out, "rows         %d a token: %d coordinates, the row of ones, %d projected, %d weighted\n",
            plan->row_count, plan->head->d, plan->row_count - plan->head->d - 1 - plan->weighted_count,
            plan->weighted_count);
    fprintf(out, "tiles        %d of at most %d features, in %d slices that threads share\n", c->tile_count,
            c->tile_features, c->slice_count);
    fprintf(out, "panel        %d tokens; register tiles %d x %d ", c->tokens, c->values.rows,
            c->values.vectors);
    if (c->values.fewer)
        fprintf(out, "or %d x %d ", c->values.fewer, c->values.vectors - 1);
    fprintf(out, "vectors of values, %d x %d of tokens\n", c->scores.rows, c->scores.vectors);
    fprintf(out, "chunk        %d tokens%s\n", plan->chunk, plan->head->chunk ? " (as the spec says)" : "");
    if (c->abreast > 1)
        fprintf(out, "heads        up to %d adjacent ones are processed alternately, one chunk of each\n",
                c->abreast);
    if (c->pairs)
        fprintf(out, "products     of pairs of bf16, summed in fp32 (recurrent form: in fp32)\n");
    plan_print_costs(out, plan);
    fprintf(out, "code         about %.0f KiB\n", c->code_bytes / 1024);
}

static void print_tiles(FILE *out, const fpa_c_plan *c)
{
    for (int i = 0; i < c->tile_count && i < MAX_TILES_PRINTED; i++) {
        const fpa_tile *tile = &c->tiles[i];
        fprintf(out, "tile %-6d features %" PRId64 "..%" PRId64 ", %d pieces\n", i, tile->feature,
                tile->feature + tile->features - 1, tile->piece_count);
    }
    if (c->tile_count > MAX_TILES_PRINTED)
        fprintf(out, "... %d more tiles\n", c->tile_count - MAX_TILES_PRINTED);
}

void plan_print_c(FILE *out, const fpa_plan *plan)
{
    print_sizes(out, plan);
    plan_print_score(out, plan);
    print_tiles(out, &plan->c);
}
