/* The fields of a plan that C templates read (gen/plan/field.h). */
#include "c.h"

#include "gen/plan/plan.h"

static const fpa_field piece_fields[] = {FIELD(fpa_piece, feature),
                                         FIELD(fpa_piece, width),
                                         FIELD(fpa_piece, base),
                                         FIELD(fpa_piece, weight),
                                         FIELD_ARRAY(fpa_piece, "prefix", prefix, prefix_count, 1, 0),
                                         FIELDS_END};

static const fpa_field plan_fields[] = {
    FIELD_AS(fpa_plan, "rows", row_count), FIELD_AS(fpa_plan, "ones", ones_row),
    FIELD_PARTS(fpa_plan, "pieces", pieces, piece_count, piece_fields, true), FIELDS_END};

static const fpa_field tile_fields[] = {FIELD(fpa_tile, feature), FIELD(fpa_tile, features),
                                        FIELD_INDEX(fpa_tile, piece),
                                        FIELD_AS(fpa_tile, "pieces", piece_count), FIELDS_END};

static const fpa_field register_tile_fields[] = {FIELD(fpa_register_tile, rows),
                                                 FIELD(fpa_register_tile, vectors),
                                                 FIELD(fpa_register_tile, fewer), FIELDS_END};

#define C(member) FIELD(fpa_c_plan, member)
static const fpa_field c_fields[] = {
    C(tokens),
    C(tile_features),
    FIELD_PART(fpa_c_plan, "values", values, register_tile_fields),
    FIELD_PART(fpa_c_plan, "scores", scores, register_tile_fields),
    FIELD_PART(fpa_c_plan, "whole_scores", whole_scores, register_tile_fields),
    C(query_blocks),
    C(shared_blocks),
    C(unrolled),
    C(pairs),
    C(converts),
    C(decays_features),
    C(team_by_chunk),
    C(team_by_token),
    C(abreast),
    FIELD_PARTS(fpa_c_plan, "tiles", tiles, tile_count, tile_fields, true),
    FIELD_ARRAY(fpa_c_plan, "slices", slices, slice_count, 1, 1),
    FIELDS_END};

bool c_field_set(const fpa_plan *plan, int i, fpa_field_set *set)
{
    const fpa_field_set sets[] = {{NULL, plan_fields, plan}, {NULL, c_fields, &plan->c}};
    if (i < 2)
        *set = sets[i];
    return i < 2;
}
