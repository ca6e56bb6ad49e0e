/* emit_flow: sizes of the one pass by warpgroups with tasks of their own as the Lua table plan.roles. */
#include "table.h"

/* A field of the table on top of the stack: how warpgroups share the work. */
static void set_share(lua_State *L, const char *field, const fpa_flow_share *share)
{
    lua_createtable(L, 0, 5);
    set_integer(L, "pack_registers", share->pack_registers);
    set_integer(L, "key_registers", share->key_registers);
    set_integer(L, "query_registers", share->query_registers);
    set_integer(L, "key_together", share->key_together);
    set_integer(L, "query_together", share->query_together);
    lua_setfield(L, -2, field);
}

static void push_groups(lua_State *L, const fpa_flow_plan *flow)
{
    set_integer(L, "key_groups", flow->key_groups);
    set_integer(L, "query_groups", flow->query_groups);
    set_integer(L, "key_tiles", flow->key_tiles);
    set_integer(L, "total_parts", flow->total_parts);
    set_integer(L, "total_packers", flow->total_packers);
    set_share(L, "walk", &flow->walk);
    set_share(L, "totals", &flow->totals);
    set_integers(L, "feature", flow->slot_feature, flow->slots);
    set_integers(L, "swapped", flow->slot_swapped, flow->slots);
}

static void push_rows(lua_State *L, const fpa_flow_plan *flow)
{
    set_boolean(L, "coordinates", flow->coordinates);
    set_integer(L, "row_base", flow->row_base);
    set_integer(L, "rows", flow->rows);
    set_integer(L, "row_pitch", FLOW_ROW_PITCH);
    set_integer(L, "projected_first", flow->projected_first);
    set_integer(L, "projected", flow->projected);
    set_integer(L, "matrix_rows", flow->matrix_rows);
    set_integer(L, "matrix_parts", flow->matrix_parts);
}

static void push_places(lua_State *L, const fpa_flow_plan *flow)
{
    set_integer(L, "panels", flow->panels);
    set_integer(L, "values", flow->values);
    set_integer(L, "raws", flow->raws);
    set_integer(L, "copies", FLOW_COPIES);
    set_integer(L, "panel_bytes", flow->panel_bytes);
    set_integer(L, "raw_bytes", flow->raw_bytes);
    set_integer(L, "copy_bytes", flow->copy_bytes);
    set_integer(L, "matrix_bytes", flow->matrix_bytes);
    set_integer(L, "outputs", flow->outputs);
    set_integer(L, "at_ones", flow->at_ones);
    set_integer(L, "at_outputs", flow->at_outputs);
    set_integer(L, "at_raws", flow->at_raws);
    set_integer(L, "at_matrix", flow->at_matrix);
    set_integer(L, "at_copies", flow->at_copies);
    set_integer(L, "at_panels", flow->at_panels);
    set_integer(L, "at_barriers", flow->at_barriers);
    set_integer(L, "at_part", flow->at_part);
    set_integer(L, "bytes", flow->bytes);
}

void push_flow(lua_State *L, const fpa_plan *plan)
{
    const fpa_flow_plan *flow = &plan->flow;
    if (!flow->used) {
        set_boolean(L, "roles", false);
        return;
    }
    lua_createtable(L, 0, 32);
    push_groups(L, flow);
    push_rows(L, flow);
    push_places(L, flow);
    lua_setfield(L, -2, "roles");
}
