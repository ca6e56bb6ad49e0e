/* emit_cluster_scan: sizes of the one pass by clusters as the Lua table plan.cluster_scan. */
#include "table.h"

void push_cluster_scan(lua_State *L, const fpa_cluster_scan_plan *cluster_scan)
{
    if (!cluster_scan->used) {
        set_boolean(L, "cluster_scan", false);
        return;
    }
    lua_createtable(L, 0, 16);
    set_integer(L, "threads", CLUSTER_SCAN_THREADS);
    set_integer(L, "span", CLUSTER_SCAN_SPAN);
    set_integer(L, "spans", cluster_scan->spans);
    set_integer(L, "copies", cluster_scan->copies);
    set_boolean(L, "outputs_apart", cluster_scan->outputs_apart);
    set_integer(L, "key_registers", cluster_scan->key_registers);
    set_integer(L, "query_registers", cluster_scan->query_registers);
    set_integer(L, "fetch_registers", cluster_scan->fetch_registers);
    set_integer(L, "gate_bytes", cluster_scan->gate_bytes);
    set_integer(L, "at_ones", cluster_scan->at_ones);
    set_integer(L, "at_outputs", cluster_scan->at_outputs);
    set_integer(L, "at_copies", cluster_scan->at_copies);
    set_integer(L, "at_state", cluster_scan->at_state);
    set_integer(L, "at_gates", cluster_scan->at_gates);
    set_integer(L, "at_barriers", cluster_scan->at_barriers);
    set_integer(L, "bytes", cluster_scan->bytes);
    lua_setfield(L, -2, "cluster_scan");
}
