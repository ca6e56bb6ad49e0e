/* returned: the values that a spec's file returns: heads and layers, or lists of them. */
#include "script.h"
#include "value.h"

/* line: the line that messages name if the value is neither a head nor a layer. */
static void take_value(lua_State *L, int index, int line, fpa_head_list *list)
{
    spec_head *value = luaL_testudata(L, index, SPEC_HEAD);
    if (luaL_testudata(L, index, SPEC_LAYER)) {
        spec_take_layer(L, index, list);
        return;
    }
    if (!value)
        script_refuse(L, line, "the file returns %s, but a spec returns head {...}, or several of them",
                      spec_describe(L, index));
    if (value->returned)
        script_refuse(L, value->line, "the same head is returned twice");
    value->returned = true;
    spec_take_head(L, index, list);
}

/* Checks that a returned list has entries 1, 2, 3 ... and nothing else. */
static void check_list(lua_State *L, int index, int line)
{
    lua_Unsigned entries = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        entries++;
    if (entries != lua_rawlen(L, index))
        script_refuse(
            L, line, "the file returns a table with named entries, but a spec returns head {...}, or a list");
}

void spec_take_heads(lua_State *L, int count, int line, fpa_head_list *list)
{
    int first = lua_gettop(L) - count + 1;
    for (int i = first; i < first + count; i++) {
        if (!lua_istable(L, i)) {
            take_value(L, i, line, list);
            continue;
        }
        check_list(L, i, line);
        for (lua_Integer entry = 1; entry <= (lua_Integer)lua_rawlen(L, i); entry++) {
            lua_rawgeti(L, i, entry);
            take_value(L, lua_gettop(L), line, list);
            lua_pop(L, 1);
        }
    }
    if (!list->count)
        script_refuse(
            L, line,
            "the file returns no head; end it with: return head { name = ..., d = ..., terms = ... }");
}
