/* Matrices from .npy files, as Lua tables of rows, which loops can slice. */
#include "value.h"

#include <stdlib.h>

#include "base/npy.h"
#include "script.h"

static const char folder_key; /* its address is the registry's key */

void spec_set_folder(lua_State *L, const char *folder)
{
    lua_pushstring(L, folder);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &folder_key);
}

/* Pushes data, [rows][columns], as a table of rows. */
void spec_push_rows(lua_State *L, const double *data, int64_t rows, int64_t columns)
{
    script_charge(L, rows * columns);
    lua_createtable(L, (int)rows, 0);
    for (int64_t r = 0; r < rows; r++) {
        lua_createtable(L, (int)columns, 0);
        for (int64_t c = 0; c < columns; c++) {
            lua_pushnumber(L, data[r * columns + c]);
            lua_rawseti(L, -2, c + 1);
        }
        lua_rawseti(L, -2, r + 1);
    }
}

/* ---- .npy ---- */

/* Frees malloc'ed values; they belong to a Lua value, so that an error frees them, too. */
static int free_values(lua_State *L)
{
    double **values = lua_touserdata(L, 1);
    free(*values);
    *values = NULL;
    return 0;
}

static double **push_owner(lua_State *L)
{
    double **values = lua_newuserdatauv(L, sizeof *values, 0);
    *values = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, free_values);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    return values;
}

/* Pushes the path of a file that the spec names. */
static const char *push_path(lua_State *L, const char *name)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &folder_key) != LUA_TSTRING)
        script_refuse(L, 0, "'%s' cannot be read: this spec is a text without a folder", name);
    if (*name == '/' || *name == '\0')
        script_refuse(L, 0, "'%s' is no path relative to the spec's own folder", name);
    return lua_pushfstring(L, "%s/%s", lua_tostring(L, -1), name);
}

enum { NUMBER_BYTES = 8 + 16 }; /* bytes of a number: as a double, and in a Lua table */

/* Pushes a table of rows, or a list of such tables. */
static void push_matrices(lua_State *L, const npy_matrices *read)
{
    if (!read->several) {
        spec_push_rows(L, read->data, read->rows, read->columns);
        return;
    }
    lua_newtable(L);
    for (int64_t i = 0; i < read->count; i++) {
        spec_push_rows(L, read->data + i * read->rows * read->columns, read->rows, read->columns);
        lua_rawseti(L, -2, i + 1);
    }
}

int spec_push_npy(lua_State *L, const char *name)
{
    int bottom = lua_gettop(L);
    const char *path = push_path(L, name);
    double **values = push_owner(L);
    npy_matrices read = {0};
    fpa_error error = {0};
    const npy_limit limit = {HEAD_MAX_ROWS, HEAD_MAX_WIDTH, script_room(L) / NUMBER_BYTES};
    if (npy_read_matrices(path, &limit, &read, &error) != FPA_OK)
        return script_raise(L, error.code, 0, "%s: %s", error.where, error.message);
    *values = read.data;
    push_matrices(L, &read);
    free(*values);
    *values = NULL;
    lua_replace(L, bottom + 1);
    lua_settop(L, bottom + 1);
    return 1;
}

static int read_npy(lua_State *L)
{
    if (lua_type(L, 1) != LUA_TSTRING)
        return script_refuse(L, 0, "npy takes the name of a file, not %s", spec_describe(L, 1));
    return spec_push_npy(L, lua_tostring(L, 1));
}

const luaL_Reg spec_matrix_functions[] = {{"npy", read_npy}, {NULL, NULL}};
