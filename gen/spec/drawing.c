/* Orthogonal matrices that are drawn from a seed, with the same bits on every machine.
 *
 * Drawing takes time, most of all for a table of many heads, so it is postponed until the numbers are needed. A
 * spec's loop reads a table that is empty until then: its metamethods draw the matrix. dense {...} takes the
 * matrix as a whole; it is drawn after the spec has run, and only if the head that has it is wanted. */
#include "value.h"

#include <math.h>

#include "base/splitmix.h"
#include "script.h"
#include "steady.h"

static double dot(const double *a, const double *b, int d)
{
    double sum = 0;
    for (int i = 0; i < d; i++)
        sum += steady_product(a[i], b[i]);
    return sum;
}

/* Makes row r orthogonal to the rows before it, and of length 1. Orthogonalising twice is enough for full accuracy
 * (Kahan). */
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

void spec_draw(const spec_drawing *drawing, double *values)
{
    uint64_t state = drawing->seed;
    for (int i = 0; i < drawing->rows * drawing->d; i++)
        values[i] = splitmix_normal(&state);
    spec_orthogonalize(values, drawing->rows, drawing->d);
}

/* ---- tables that are empty until they are read ---- */

static const char drawing_field[] = "drawing"; /* field of the metatables of such tables */

bool spec_is_drawing(lua_State *L, int index, spec_drawing *drawing)
{
    if (!luaL_getmetafield(L, index, drawing_field))
        return false;
    *drawing = *(const spec_drawing *)lua_touserdata(L, -1);
    lua_pop(L, 1);
    return true;
}

void spec_fill(lua_State *L, int index)
{
    spec_drawing drawing;
    const int table = lua_absindex(L, index);
    if (!lua_istable(L, table) || !spec_is_drawing(L, table, &drawing))
        return;
    double *values = lua_newuserdatauv(L, (size_t)drawing.rows * (size_t)drawing.d * sizeof *values, 0);
    lua_pushnil(L);
    lua_setmetatable(L, table);
    spec_draw(&drawing, values);
    spec_push_rows(L, values, drawing.rows, drawing.d);
    for (int row = 1; row <= drawing.rows; row++) {
        lua_rawgeti(L, -1, row);
        lua_rawseti(L, table, row);
    }
    lua_pop(L, 2);
}

static int get_row(lua_State *L)
{
    spec_fill(L, 1);
    lua_settop(L, 2);
    lua_rawget(L, 1);
    return 1;
}

static int set_row(lua_State *L)
{
    spec_fill(L, 1);
    lua_settop(L, 3);
    lua_rawset(L, 1);
    return 0;
}

static int count_rows(lua_State *L)
{
    spec_fill(L, 1);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, 1));
    return 1;
}

static void push_drawing(lua_State *L, const spec_drawing *drawing)
{
    static const luaL_Reg methods[] = {
        {"__index", get_row}, {"__newindex", set_row}, {"__len", count_rows}, {NULL, NULL}};
    lua_newtable(L);
    luaL_newlib(L, methods);
    *(spec_drawing *)lua_newuserdatauv(L, sizeof *drawing, 0) = *drawing;
    lua_setfield(L, -2, drawing_field);
    lua_setmetatable(L, -2);
}

enum {
    /* products that count as an instruction: the largest matrix counts as 4 million and takes some seconds */
    PRODUCTS = 256,
    /* entries; smaller matrices are drawn at once, since two seeds may give equal ones, which have to count as one
     * matrix */
    FEW = 64
};

/* orthogonal { rows =, d =, seed = }: rows that are orthonormal up to 1e-15. */
static int make_orthogonal(lua_State *L)
{
    static const char *const names[] = {"rows", "d", "seed", NULL};

    spec_fields(L, 1, "orthogonal", names, false);
    const int d = (int)spec_field_whole(L, 1, "orthogonal", "d", 1, HEAD_MAX_WIDTH, SPEC_REQUIRED);
    const int rows = (int)spec_field_whole(L, 1, "orthogonal", "rows", 1, HEAD_MAX_WIDTH, d);
    const uint64_t seed = (uint64_t)spec_field_whole(L, 1, "orthogonal", "seed", 0, INT64_MAX, SPEC_REQUIRED);
    if (rows > d)
        return script_refuse(L, 0, "orthogonal has rows = %d, but in d = %d dimensions there are at most %d",
                             rows, d, d);
    script_charge(L, (int64_t)rows * d * (rows + 12) / PRODUCTS);
    push_drawing(L, &(spec_drawing){rows, d, seed});
    if (rows * d < FEW)
        spec_fill(L, -1);
    return 1;
}

const luaL_Reg spec_drawing_functions[] = {{"orthogonal", make_orthogonal}, {NULL, NULL}};
