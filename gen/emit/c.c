/* Values that are computed from a plan for C templates; fields that are copied are described in
 * gen/plan/c/fields.c. */
#include "gen/embedded.h"
#include "table.h"

void push_c(lua_State *L, const fpa_plan *plan)
{
    set_integer(L, "vector", plan->target->vector);
    set_boolean(L, "halves", plan->target->halves);
    set_string(L, "march", plan->target->march);
    push_projections(L, plan, NULL);
    lua_createtable(L, plan->score->dot_count, 0);
    for (int i = 0; i < plan->score->dot_count; i++) {
        push_integers(L, plan->dots[i].rows, plan->dots[i].row_count);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "dots");
    push_monomials(L, plan);
    push_trainable(L, plan->written);
    set_string(L, "launch_text", fpa_embedded_launch_h);
}
