/* emit_hopper: tiles, stars and sizes of warpgroups as the Lua table plan.hopper. */
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

/* Tiles of stars; as many as there are: none. */
static void push_stars(lua_State *L, const fpa_hopper_plan *hopper)
{
    const int count = hopper->stars * hopper->star_leaves;
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushinteger(L, hopper->star_tile[i] < 0 ? hopper->tiles : hopper->star_tile[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "star_tile");
    set_integers(L, "star_group", hopper->star_group, hopper->stars);
    set_integer(L, "star", hopper->star_leaves);
    set_integer(L, "stars", hopper->stars);
    set_integer(L, "own_stars", hopper->own_stars);
}

static void push_groups(lua_State *L, const fpa_hopper_plan *hopper)
{
    static const char *const kinds[] = {[CENTRE_ANY] = "any", [CENTRE_BLOCK] = "block", [CENTRE_ROW] = "row"};
    set_integer(L, "groups", hopper->groups);
    set_integer(L, "centre_factors", hopper->centre_factors);
    set_integers(L, "group_first", hopper->group_first, hopper->groups + 1);
    set_integers(L, "centre", hopper->centre, hopper->groups * 8 * hopper->centre_factors);
    lua_createtable(L, hopper->centre_factors, 0);
    for (int l = 0; l < hopper->centre_factors; l++) {
        lua_pushstring(L, kinds[hopper_centre_kind(hopper, l)]);
        lua_rawseti(L, -2, l + 1);
    }
    lua_setfield(L, -2, "centre_kind");
}

/* Weights of a tile's rows: as a state has them, and with the scale of q, which copies have too. */
static void push_weights(lua_State *L, const fpa_plan *plan)
{
    const fpa_hopper_plan *hopper = &plan->hopper;
    const int count = hopper->tiles * HOPPER_TILE;
    set_numbers(L, "state_weight", hopper->weight, count);
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushnumber(L, hopper->weight[i] * pow(plan->head->scale, hopper->degree[i]));
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "copy_weight");
    set_boolean(L, "weighted", hopper->weighted);
    set_boolean(L, "powers", hopper->powers);
    set_boolean(L, "padded", hopper->padded);
}

static void push_tiles(lua_State *L, const fpa_plan *plan)
{
    const fpa_hopper_plan *hopper = &plan->hopper;
    set_integer(L, "tiles", hopper->tiles);
    set_integer(L, "folded", hopper->folded);
    set_integer(L, "copy_rows", hopper->copy_rows);
    set_integers(L, "tile_leaf", hopper->tile_leaf, hopper->tiles);
    set_integers(L, "feature", hopper->feature, hopper->tiles * HOPPER_TILE);
    push_weights(L, plan);
}

/* Where the rows of a packed vector come from: rows of a panel, which has a row of zeros. */
static void push_vectors(lua_State *L, const fpa_plan *plan)
{
    const fpa_hopper_plan *hopper = &plan->hopper;
    const int count = 8 * hopper->row_blocks;
    set_integer(L, "row_blocks", hopper->row_blocks);
    set_boolean(L, "natural", hopper->natural);
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushinteger(L, hopper->source[i] < 0 ? plan->cuda.zero_row : plan->cuda.row[hopper->source[i]]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "source");
}

static void push_state(lua_State *L, const fpa_warpgroup_plan *groups)
{
    lua_createtable(L, groups->kernels, 0);
    for (int i = 0; i < groups->kernels; i++) {
        const fpa_state_kernel *kernel = &groups->state[i];
        lua_createtable(L, 0, 14);
        set_integer(L, "groups", kernel->groups);
        set_integer(L, "stars", kernel->stars);
        set_integer(L, "slices", kernel->slices);
        set_integer(L, "stages", kernel->stages);
        set_integer(L, "bytes", kernel->bytes);
        set_integer(L, "places", kernel->places);
        set_integer(L, "shares", kernel->shares);
        set_integer(L, "centre_blocks", kernel->centre_blocks);
        set_boolean(L, "own", kernel->own);
        set_integer(L, "portion", kernel->portion);
        set_integer(L, "threads", WARPGROUP_THREADS * (kernel->groups + 1));
        set_integer(L, "registers", kernel->registers);
        set_integer(L, "clocks", kernel->clocks);
        set_integer(L, "feed_registers", kernel->feed_registers);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "state");
}

static void push_sizes(lua_State *L, const fpa_warpgroup_plan *groups)
{
    push_state(L, groups);
    set_integer(L, "query_stages", groups->query_stages);
    set_integer(L, "score_places", groups->score_places);
    set_integer(L, "tile_stages", groups->tile_stages);
    set_integer(L, "key_stages", groups->key_stages);
    set_integer(L, "attend_bytes", groups->attend_bytes);
    set_integer(L, "attend_clocks", groups->attend_clocks);
    set_integer(L, "pack_bytes", groups->pack.bytes);
    set_integer(L, "pack_tile", groups->pack.tile);
    set_integer(L, "pack_pitch", groups->pack.pitch);
    set_boolean(L, "pack_keeps", groups->pack.keeps_matrices);
    set_integer(L, "pack_tokens", PACK_TOKENS);
    set_integer(L, "attend_groups", groups->attend_groups);
    set_integer(L, "attend_registers", warpgroup_registers(groups->attend_groups));
    set_integer(L, "attend_feed_registers", warpgroup_feed_registers(groups->attend_groups));
}

void push_hopper(lua_State *L, const fpa_plan *plan)
{
    const fpa_hopper_plan *hopper = &plan->hopper;
    lua_createtable(L, 0, 40);
    set_boolean(L, "used", hopper->used);
    if (hopper->used) {
        push_stars(L, hopper);
        push_groups(L, hopper);
        push_tiles(L, plan);
        push_vectors(L, plan);
        push_sizes(L, &plan->warpgroups);
        set_integers(L, "dot_first", hopper->dot_first, plan->score->dot_count + 1);
        set_integers(L, "dot_step", hopper->dot_step, hopper->dot_first[plan->score->dot_count]);
    }
    lua_setfield(L, -2, "hopper");
}
