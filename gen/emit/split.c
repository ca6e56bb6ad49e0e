/* emit_outer: tiles, strips and sizes of warpgroups as the Lua table plan.hopper. */
#include <math.h>

#include "table.h"

static void set_numbers(lua_State *L, const char *field, const double *values, int count)
{
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushnumber(L, values[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, field);
}

/* Tiles of strips; as many as there are: none. */
static void push_strips(lua_State *L, const fpa_outer_plan *outer)
{
    const int count = outer->strips * outer->strip_length;
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushinteger(L, outer->strip_tile[i] < 0 ? outer->tiles : outer->strip_tile[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "strip_tile");
    set_integers(L, "strip_group", outer->strip_group, outer->strips);
    set_integer(L, "strip", outer->strip_length);
    set_integer(L, "strips", outer->strips);
    set_integer(L, "own_strips", outer->own_strips);
}

static void push_groups(lua_State *L, const fpa_outer_plan *outer)
{
    static const char *const kinds[] = {[PREFIX_ANY] = "any", [PREFIX_BLOCK] = "block", [PREFIX_ROW] = "row"};
    set_integer(L, "groups", outer->groups);
    set_integer(L, "prefix_factors", outer->prefix_factors);
    set_integers(L, "group_first", outer->group_first, outer->groups + 1);
    set_integers(L, "prefix", outer->prefix, outer->groups * 8 * outer->prefix_factors);
    lua_createtable(L, outer->prefix_factors, 0);
    for (int l = 0; l < outer->prefix_factors; l++) {
        lua_pushstring(L, kinds[outer_prefix_kind(outer, l)]);
        lua_rawseti(L, -2, l + 1);
    }
    lua_setfield(L, -2, "prefix_kind");
}

/* Weights of a tile's rows: as a state has them, and with the scale of q, which copies have too. */
static void push_weights(lua_State *L, const fpa_plan *plan)
{
    const fpa_outer_plan *outer = &plan->outer;
    const int count = outer->tiles * OUTER_TILE;
    set_numbers(L, "state_weight", outer->weight, count);
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushnumber(L, outer->weight[i] * pow(plan->head->scale, outer->degree[i]));
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "copy_weight");
    set_boolean(L, "weighted", outer->weighted);
    set_boolean(L, "powers", outer->powers);
    set_boolean(L, "padded", outer->padded);
}

static void push_tiles(lua_State *L, const fpa_plan *plan)
{
    const fpa_outer_plan *outer = &plan->outer;
    set_integer(L, "tiles", outer->tiles);
    set_integer(L, "folded", outer->folded);
    set_integer(L, "copy_rows", outer->copy_rows);
    set_integers(L, "tile_suffix", outer->tile_suffix, outer->tiles);
    set_integers(L, "feature", outer->feature, outer->tiles * OUTER_TILE);
    push_weights(L, plan);
}

/* Where the rows of a packed vector come from: rows of a panel, which has a row of zeros. */
static void push_vectors(lua_State *L, const fpa_plan *plan)
{
    const fpa_outer_plan *outer = &plan->outer;
    const int count = 8 * outer->row_blocks;
    set_integer(L, "row_blocks", outer->row_blocks);
    set_boolean(L, "coordinates", outer->coordinates);
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushinteger(L, outer->source[i] < 0 ? plan->cuda.zero_row : plan->cuda.row[outer->source[i]]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "source");
}

static void push_state(lua_State *L, const fpa_split_plan *groups)
{
    lua_createtable(L, groups->kernels, 0);
    for (int i = 0; i < groups->kernels; i++) {
        const fpa_chunk_state_kernel *kernel = &groups->state[i];
        lua_createtable(L, 0, 14);
        set_integer(L, "groups", kernel->groups);
        set_integer(L, "strips", kernel->strips);
        set_integer(L, "slices", kernel->slices);
        set_integer(L, "stages", kernel->stages);
        set_integer(L, "bytes", kernel->bytes);
        set_integer(L, "places", kernel->places);
        set_integer(L, "shares", kernel->shares);
        set_integer(L, "prefix_blocks", kernel->prefix_blocks);
        set_boolean(L, "own", kernel->own);
        set_integer(L, "portion", kernel->portion);
        set_integer(L, "threads", WARPGROUP_THREADS * (kernel->groups + 1));
        set_integer(L, "registers", kernel->registers);
        set_integer(L, "clocks", kernel->clocks);
        set_integer(L, "producer_registers", kernel->producer_registers);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "state");
}

static void push_sizes(lua_State *L, const fpa_split_plan *groups)
{
    push_state(L, groups);
    set_integer(L, "query_stages", groups->query_stages);
    set_integer(L, "score_places", groups->score_places);
    set_integer(L, "tile_stages", groups->tile_stages);
    set_integer(L, "key_stages", groups->key_stages);
    set_integer(L, "chunk_output_bytes", groups->chunk_output_bytes);
    set_integer(L, "chunk_output_clocks", groups->chunk_output_clocks);
    set_integer(L, "pack_bytes", groups->pack.bytes);
    set_integer(L, "pack_tile", groups->pack.tile);
    set_integer(L, "pack_pitch", groups->pack.pitch);
    set_boolean(L, "pack_keeps", groups->pack.keeps_matrices);
    set_integer(L, "pack_tokens", PACK_TOKENS);
    set_integer(L, "chunk_output_groups", groups->chunk_output_groups);
    set_integer(L, "chunk_output_registers", warpgroup_registers(groups->chunk_output_groups));
    set_integer(L, "chunk_output_producer_registers",
                warpgroup_producer_registers(groups->chunk_output_groups));
}

void push_split(lua_State *L, const fpa_plan *plan)
{
    const fpa_outer_plan *outer = &plan->outer;
    lua_createtable(L, 0, 40);
    set_boolean(L, "used", outer->used);
    if (outer->used) {
        push_strips(L, outer);
        push_groups(L, outer);
        push_tiles(L, plan);
        push_vectors(L, plan);
        push_sizes(L, &plan->warpgroups);
        set_integers(L, "dot_first", outer->dot_first, plan->score->dot_count + 1);
        set_integers(L, "dot_step", outer->dot_step, outer->dot_first[plan->score->dot_count]);
    }
    lua_setfield(L, -2, "outer");
}
