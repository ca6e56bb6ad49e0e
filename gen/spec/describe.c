/* Describes values of a spec in messages. */
#include "value.h"

#include <math.h>

const char *spec_describe(lua_State *L, int index)
{
    if (lua_type(L, index) == LUA_TSTRING)
        return lua_pushfstring(L, "'%s'", lua_tostring(L, index));
    if (lua_isinteger(L, index))
        return lua_pushfstring(L, "%I", lua_tointeger(L, index));
    if (lua_type(L, index) == LUA_TNUMBER && isnan(lua_tonumber(L, index)))
        return "nan"; /* not -nan, which some machines print */
    if (lua_type(L, index) == LUA_TNUMBER)
        return lua_pushfstring(L, "%f", lua_tonumber(L, index));
    if (lua_isboolean(L, index))
        return lua_toboolean(L, index) ? "true" : "false";
    if (lua_isnoneornil(L, index))
        return "nothing";
    const spec_exact *number = luaL_testudata(L, index, SPEC_EXACT);
    if (number) {
        char text[NUMBER_TEXT];
        number_print(text, number->value);
        const char *sign = number->root && number->negative ? "-" : "";
        return lua_pushfstring(L, number->root ? "%sthe root of %s" : "%s%s", sign, text);
    }
    if (luaL_getmetafield(L, index, "__name") == LUA_TSTRING)
        return lua_pushfstring(L, "a %s", lua_tostring(L, -1));
    return lua_pushfstring(L, "a %s", luaL_typename(L, index));
}
