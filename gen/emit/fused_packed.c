/* emit_fused: sizes of the one pass by warpgroups with tasks of their own as the Lua table plan.roles. */
#include "table.h"

/* A field of the table on top of the stack: how warpgroups share the work. */
static void set_share(lua_State *L, const char *field, const fpa_fused_share *share)
{
    lua_createtable(L, 0, 5);
    set_integer(L, "pack_registers", share->pack_registers);
    set_integer(L, "key_registers", share->key_registers);
    set_integer(L, "query_registers", share->query_registers);
    set_integer(L, "key_together", share->key_together);
    set_integer(L, "query_together", share->query_together);
    lua_setfield(L, -2, field);
}

static void push_groups(lua_State *L, const fpa_fused_packed_plan *fused)
{
    set_integer(L, "key_groups", fused->key_groups);
    set_integer(L, "query_groups", fused->query_groups);
    set_integer(L, "key_tiles", fused->key_tiles);
    set_integer(L, "total_parts", fused->total_parts);
    set_integer(L, "total_packers", fused->total_packers);
    set_share(L, "walk", &fused->walk);
    set_share(L, "totals", &fused->totals);
    set_integers(L, "feature", fused->slot_feature, fused->slots);
    set_integers(L, "swapped", fused->slot_swapped, fused->slots);
}

static void push_rows(lua_State *L, const fpa_fused_packed_plan *fused)
{
    set_boolean(L, "coordinates", fused->coordinates);
    set_integer(L, "row_base", fused->row_base);
    set_integer(L, "rows", fused->rows);
    set_integer(L, "row_pitch", FUSED_ROW_PITCH);
    set_integer(L, "projected_first", fused->projected_first);
    set_integer(L, "projected", fused->projected);
    set_integer(L, "matrix_rows", fused->matrix_rows);
    set_integer(L, "matrix_parts", fused->matrix_parts);
}

static void push_places(lua_State *L, const fpa_fused_packed_plan *fused)
{
    set_integer(L, "panels", fused->panels);
    set_integer(L, "values", fused->values);
    set_integer(L, "raw_stages", fused->raw_stages);
    set_integer(L, "copies", FUSED_COPIES);
    set_integer(L, "panel_bytes", fused->panel_bytes);
    set_integer(L, "raw_bytes", fused->raw_bytes);
    set_integer(L, "copy_bytes", fused->copy_bytes);
    set_integer(L, "matrix_bytes", fused->matrix_bytes);
    set_integer(L, "outputs", fused->outputs);
    set_integer(L, "at_ones", fused->at_ones);
    set_integer(L, "at_outputs", fused->at_outputs);
    set_integer(L, "at_raw_stages", fused->at_raw_stages);
    set_integer(L, "at_matrix", fused->at_matrix);
    set_integer(L, "at_copies", fused->at_copies);
    set_integer(L, "at_panels", fused->at_panels);
    set_integer(L, "at_barriers", fused->at_barriers);
    set_integer(L, "at_part", fused->at_part);
    set_integer(L, "bytes", fused->bytes);
}

void push_fused_packed(lua_State *L, const fpa_plan *plan)
{
    const fpa_fused_packed_plan *fused = &plan->fused_packed;
    if (!fused->used) {
        set_boolean(L, "fused_packed", false);
        return;
    }
    lua_createtable(L, 0, 32);
    push_groups(L, fused);
    push_rows(L, fused);
    push_places(L, fused);
    lua_setfield(L, -2, "fused_packed");
}
