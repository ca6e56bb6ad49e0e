/* plan.lift: how coordinates are computed, as templates print it; false: they are q and k themselves. */
#include "emit.h"

#include "head/lift.h"
#include "table.h"

static void push_doubles(lua_State *L, const double *data, size_t count)
{
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushnumber(L, data[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* weight: index of the matrix among the launch's weights. */
static void push_matrix(lua_State *L, const fpa_matrix *matrix, int weight)
{
    const bool constant = matrix->kind == FPA_MATRIX_CONSTANT;
    lua_createtable(L, 0, 8);
    set_integer(L, "rows", matrix->rows);
    set_integer(L, "cols", matrix->cols);
    set_integer(L, "heads", matrix->heads);
    set_boolean(L, "constant", constant);
    set_boolean(L, "diagonal", matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL);
    set_boolean(L, "per_head", matrix->per_head);
    set_integer(L, "index", weight);
    set_string(L, "name", constant ? "a constant" : matrix->name);
    if (!constant)
        return;
    push_doubles(L, matrix->data, (size_t)(matrix->heads ? matrix->heads : 1) * matrix->rows * matrix->cols);
    lua_setfield(L, -2, "data");
}

static void set_matrices(lua_State *L, const fpa_head *head)
{
    int weights = 0;
    lua_createtable(L, head->matrix_count, 0);
    for (int m = 0; m < head->matrix_count; m++) {
        push_matrix(L, &head->matrices[m], weights);
        weights += head->matrices[m].kind != FPA_MATRIX_CONSTANT;
        lua_rawseti(L, -2, m + 1);
    }
    lua_setfield(L, -2, "matrices");
    set_integer(L, "weights", weights);
}

/* The 1-based index of a matrix, or false: none. */
static void set_matrix(lua_State *L, const char *field, int matrix)
{
    if (matrix < 0)
        lua_pushboolean(L, false);
    else
        lua_pushinteger(L, matrix + 1);
    lua_setfield(L, -2, field);
}

static void set_number(lua_State *L, const char *field, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, field);
}

static void push_factor(lua_State *L, const fpa_lift_part *part, const fpa_lift_factor *factor)
{
    lua_createtable(L, 0, 3);
    set_matrix(L, "matrix", factor->source);
    set_matrix(L, "imaginary", factor->imaginary);
    if (factor->source == FPA_INPUT)
        push_integers(L, factor->row, part->rows);
    else
        lua_pushboolean(L, false);
    lua_setfield(L, -2, "row");
}

static void set_side(lua_State *L, const char *field, const fpa_lift_part *part, fpa_side side)
{
    lua_createtable(L, 0, 2);
    set_string(L, "map", map_name(part->map[side]));
    set_number(L, "gain", part->gain[side]);
    lua_setfield(L, -2, field);
}

static void push_part(lua_State *L, const fpa_lift_part *part, int first)
{
    lua_createtable(L, 0, 16);
    set_integer(L, "first", first);
    set_integer(L, "rows", part->rows);
    set_integer(L, "coordinates", lift_coordinates(part));
    set_boolean(L, "is_complex", part->is_complex);
    set_number(L, "inner", part->inner);
    set_number(L, "square", part->square);
    set_number(L, "shift", part->shift);
    set_side(L, "query", part, FPA_QUERY);
    set_side(L, "key", part, FPA_KEY);
    set_matrix(L, "angle", part->angle);
    set_matrix(L, "phase", part->phase);
    set_matrix(L, "amplitude", part->amplitude);
    lua_createtable(L, part->factor_count, 0);
    for (int f = 0; f < part->factor_count; f++) {
        push_factor(L, part, &part->factors[f]);
        lua_rawseti(L, -2, f + 1);
    }
    lua_setfield(L, -2, "factors");
}

static void set_parts(lua_State *L, const fpa_lift *lift)
{
    int first = 0;
    lua_createtable(L, lift->part_count, 0);
    for (int i = 0; i < lift->part_count; i++) {
        push_part(L, &lift->parts[i], first);
        first += lift_coordinates(&lift->parts[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "parts");
}

void push_lift(lua_State *L, const fpa_head *written)
{
    const fpa_lift *lift = written->lift;
    if (!lift) {
        lua_pushboolean(L, false);
        lua_setfield(L, -2, "lift");
        return;
    }
    lua_createtable(L, 0, 8);
    set_integer(L, "width", lift->width);
    set_integer(L, "positions", lift->positions);
    set_boolean(L, "key_mask", lift->key_mask);
    set_number(L, "scale", written->scale);
    set_matrices(L, written);
    set_parts(L, lift);
    lua_setfield(L, -2, "lift");
}
