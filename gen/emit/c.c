#include "gen/embedded.h"
#include "table.h"

static void push_pieces(lua_State *L, const fpa_plan *plan)
{
    lua_createtable(L, plan->piece_count, 0);
    for (int i = 0; i < plan->piece_count; i++) {
        const fpa_piece *piece = &plan->pieces[i];
        lua_createtable(L, 0, 5);
        set_integer(L, "feature", piece->feature);
        set_integer(L, "width", piece->width);
        set_integer(L, "base", piece->base);
        set_number(L, "weight", piece->weight);
        set_integers(L, "prefix", piece->prefix, piece->prefix_count);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "pieces");
}

/* Lua counts pieces from 1. */
static void push_tiles(lua_State *L, const fpa_c_plan *c)
{
    lua_createtable(L, c->tile_count, 0);
    for (int i = 0; i < c->tile_count; i++) {
        const fpa_tile *tile = &c->tiles[i];
        lua_createtable(L, 0, 4);
        set_integer(L, "feature", tile->feature);
        set_integer(L, "features", tile->features);
        set_integer(L, "piece", tile->piece + 1);
        set_integer(L, "pieces", tile->piece_count);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "tiles");
    set_integers(L, "slices", c->slices, c->slice_count + 1);
}

static void push_rows(lua_State *L, const fpa_plan *plan)
{
    push_projections(L, plan, NULL);
    set_integer(L, "rows", plan->row_count);
    set_integer(L, "ones", plan->ones_row);
}

static void push_score(lua_State *L, const fpa_plan *plan)
{
    lua_createtable(L, plan->score->dot_count, 0);
    for (int i = 0; i < plan->score->dot_count; i++) {
        push_integers(L, plan->dots[i].rows, plan->dots[i].row_count);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "dots");
    push_monomials(L, plan);
}

static void set_register_tile(lua_State *L, const char *field, fpa_register_tile tile)
{
    lua_createtable(L, 0, 2);
    set_integer(L, "rows", tile.rows);
    set_integer(L, "vectors", tile.vectors);
    lua_setfield(L, -2, field);
}

static void push_sizes(lua_State *L, const fpa_plan *plan)
{
    const fpa_c_plan *c = &plan->c;
    set_integer(L, "vector", plan->target->vector);
    set_integer(L, "tokens", c->tokens);
    set_integer(L, "tile_features", c->tile_features);
    set_register_tile(L, "values", c->values);
    set_register_tile(L, "scores", c->scores);
    set_integer(L, "chunk", plan->chunk);
    set_integer(L, "query_blocks", c->query_blocks);
    set_boolean(L, "unrolled", c->unrolled);
    set_boolean(L, "pairs", c->pairs);
    set_boolean(L, "team_by_chunk", c->team_by_chunk);
    set_boolean(L, "team_by_token", c->team_by_token);
}

void push_c(lua_State *L, const fpa_plan *plan)
{
    push_sizes(L, plan);
    push_rows(L, plan);
    push_pieces(L, plan);
    push_tiles(L, &plan->c);
    push_score(L, plan);
    set_string(L, "launch_text", fpa_embedded_launch_h);
}
