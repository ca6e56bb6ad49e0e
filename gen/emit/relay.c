/* emit_relay: sizes of the one pass by clusters as the Lua table plan.relay. */
#include "table.h"

void push_relay(lua_State *L, const fpa_relay_plan *relay)
{
    if (!relay->used) {
        set_boolean(L, "relay", false);
        return;
    }
    lua_createtable(L, 0, 16);
    set_integer(L, "threads", RELAY_THREADS);
    set_integer(L, "stretch", RELAY_STRETCH);
    set_integer(L, "stretches", relay->stretches);
    set_integer(L, "copies", relay->copies);
    set_boolean(L, "outputs_apart", relay->outputs_apart);
    set_integer(L, "key_registers", relay->key_registers);
    set_integer(L, "query_registers", relay->query_registers);
    set_integer(L, "fetch_registers", relay->fetch_registers);
    set_integer(L, "gate_bytes", relay->gate_bytes);
    set_integer(L, "at_ones", relay->at_ones);
    set_integer(L, "at_outputs", relay->at_outputs);
    set_integer(L, "at_copies", relay->at_copies);
    set_integer(L, "at_state", relay->at_state);
    set_integer(L, "at_gates", relay->at_gates);
    set_integer(L, "at_barriers", relay->at_barriers);
    set_integer(L, "bytes", relay->bytes);
    lua_setfield(L, -2, "relay");
}
