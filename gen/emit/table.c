#include "table.h"

void set_integer(lua_State *L, const char *field, lua_Integer value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, field);
}

void set_number(lua_State *L, const char *field, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, field);
}

void set_string(lua_State *L, const char *field, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, field);
}

void set_boolean(lua_State *L, const char *field, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, field);
}

void push_integers(lua_State *L, const int *values, int count)
{
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushinteger(L, values[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

void set_integers(lua_State *L, const char *field, const int *values, int count)
{
    push_integers(L, values, count);
    lua_setfield(L, -2, field);
}

/* Position of a run-time matrix among the launch's weights. */
static int weight_index(const fpa_head *head, int matrix)
{
    int index = 0;
    for (int i = 0; i < matrix; i++)
        index += head->matrices[i].kind != FPA_MATRIX_CONSTANT;
    return index;
}

static void push_projection(lua_State *L, const fpa_head *head, const fpa_projection *projection,
                            const int *row)
{
    const fpa_matrix *matrix = &head->matrices[projection->matrix];
    const bool constant = matrix->kind == FPA_MATRIX_CONSTANT;
    lua_createtable(L, 0, 10);
    set_integer(L, "matrix", projection->matrix + 1);
    set_integer(L, "first", row ? row[projection->first_row] : projection->first_row);
    set_integer(L, "rows", matrix->rows);
    set_boolean(L, "constant", constant);
    set_boolean(L, "diagonal", matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL);
    set_boolean(L, "per_head", matrix->per_head);
    set_integer(L, "index", weight_index(head, projection->matrix));
    lua_pushfstring(L, "%s, %d x %d", constant ? "a constant" : matrix->name, matrix->rows, matrix->cols);
    lua_setfield(L, -2, "what");
    if (constant) {
        int count = matrix->rows * matrix->cols;
        lua_createtable(L, count, 0);
        for (int i = 0; i < count; i++) {
            lua_pushnumber(L, matrix->data[i]);
            lua_rawseti(L, -2, i + 1);
        }
        lua_setfield(L, -2, "data");
    }
}

void push_projections(lua_State *L, const fpa_plan *plan, const int *row)
{
    lua_createtable(L, plan->projection_count, 0);
    for (int i = 0; i < plan->projection_count; i++) {
        push_projection(L, plan->head, &plan->projections[i], row);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "projections");
    lua_createtable(L, plan->weighted_count, 0);
    for (int i = 0; i < plan->weighted_count; i++) {
        const fpa_weighted_row *weighted = &plan->weighted[i];
        lua_createtable(L, 0, 3);
        set_integer(L, "row", row ? row[weighted->row] : weighted->row);
        set_integer(L, "from", row ? row[weighted->from] : weighted->from);
        set_number(L, "gram", weighted->gram);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "weighted");
}

void push_monomials(lua_State *L, const fpa_plan *plan)
{
    const fpa_score *score = plan->score;
    lua_createtable(L, score->monomial_count, 0);
    for (int i = 0; i < score->monomial_count; i++) {
        lua_createtable(L, 0, 2);
        set_number(L, "weight", score->monomials[i].weight.value);
        set_integers(L, "power", score->monomials[i].power, score->dot_count);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "monomials");
}
