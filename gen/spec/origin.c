/* origin: the file and line where a head or a layer is defined. */
#include "value.h"

static const char file_key; /* its address is the registry's key */

void spec_set_file(lua_State *L, const char *file)
{
    lua_pushstring(L, file);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &file_key);
}

const char *spec_origin(lua_State *L, int line)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &file_key);
    return lua_pushfstring(L, "%s:%d", lua_tostring(L, -1), line);
}
