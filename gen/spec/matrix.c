/* Matrices of a spec as tables of rows, which loops can slice: from a .npy file, or orthogonal
 * and random from a seed. */
#include "value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/npy.h"
#include "base/splitmix.h"
#include "script.h"
#include "steady.h"

static const char folder_key; /* its address is the registry's key */

void spec_set_folder(lua_State *L, const char *folder)
{
    lua_pushstring(L, folder);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &folder_key);
}

/* data is [rows][columns]. */
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

/* malloc'ed values, owned by a Lua value so that an error frees them. */
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

/* The path of a file that the spec names, pushed. */
static const char *push_path(lua_State *L, const char *name)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &folder_key) != LUA_TSTRING)
        script_refuse(L, 0, "'%s' cannot be read: this spec is a text without a folder", name);
    if (*name == '/' || *name == '\0')
        script_refuse(L, 0, "'%s' is no path relative to the spec's own folder", name);
    return lua_pushfstring(L, "%s/%s", lua_tostring(L, -1), name);
}

enum { NUMBER_BYTES = 8 + 16 }; /* as it is read, and in a table of Lua's */

/* A table of rows, or a list of such tables. */
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

/* ---- orthogonal: the same bits on every machine ---- */

static double dot(const double *a, const double *b, int d)
{
    double sum = 0;
    for (int i = 0; i < d; i++)
        sum += steady_product(a[i], b[i]);
    return sum;
}

/* Make row r orthogonal to the rows before it and of length 1. Twice is enough (Kahan). */
static void orthogonalize_row(double *rows, int r, int d)
{
    double *row = rows + (size_t)r * (size_t)d;

    for (int pass = 0; pass < 2; pass++) {
        for (int before = 0; before < r; before++) {
            const double *other = rows + (size_t)before * (size_t)d;
            double along = dot(row, other, d);
            for (int i = 0; i < d; i++)
                row[i] -= steady_product(along, other[i]);
        }
        double length = sqrt(dot(row, row, d));
        for (int i = 0; i < d; i++)
            row[i] /= length;
    }
}

void spec_orthogonalize(double *values, int rows, int d)
{
    for (int r = 0; r < rows; r++)
        orthogonalize_row(values, r, d);
}

enum { PRODUCTS = 256 }; /* that count as an instruction: a largest matrix is 4 million, in some seconds */

/* orthogonal { rows =, d =, seed = }: rows that are orthonormal to 1e-15. */
static int make_orthogonal(lua_State *L)
{
    static const char *const names[] = {"rows", "d", "seed", NULL};

    spec_fields(L, 1, "orthogonal", names, false);
    int d = (int)spec_field_whole(L, 1, "orthogonal", "d", 1, HEAD_MAX_WIDTH, SPEC_REQUIRED);
    int rows = (int)spec_field_whole(L, 1, "orthogonal", "rows", 1, HEAD_MAX_WIDTH, d);
    uint64_t state = (uint64_t)spec_field_whole(L, 1, "orthogonal", "seed", 0, INT64_MAX, SPEC_REQUIRED);
    if (rows > d)
        return script_refuse(L, 0, "orthogonal has rows = %d, but in d = %d dimensions there are at most %d",
                             rows, d, d);
    script_charge(L, (int64_t)rows * d * (rows + 12) / PRODUCTS);
    double *values = lua_newuserdatauv(L, (size_t)rows * (size_t)d * sizeof *values, 0);
    for (int i = 0; i < rows * d; i++)
        values[i] = splitmix_normal(&state);
    spec_orthogonalize(values, rows, d);
    spec_push_rows(L, values, rows, d);
    return 1;
}

const luaL_Reg spec_matrix_functions[] = {{"npy", read_npy}, {"orthogonal", make_orthogonal}, {NULL, NULL}};
