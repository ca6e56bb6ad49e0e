#include "table.h"

void set_integer(lua_State *L, const char *field, lua_Integer value)
{
    lua_pushinteger(L, value);
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

/* ---- fields by their description ---- */

static const void *member(const fpa_field *field, const void *of)
{
    return (const char *)of + field->offset;
}

static int count_of(const fpa_field *field, const void *of)
{
    return *(const int *)((const char *)of + field->count) * field->times + field->more;
}

/* Pushes element i of the array to which the pointer at `at` points. */
static void push_element(lua_State *L, const fpa_field *field, const void *at, int i)
{
    if (field->kind == FIELD_INTS)
        lua_pushinteger(L, (*(int *const *)at)[i]);
    else if (field->kind == FIELD_DOUBLES)
        lua_pushnumber(L, (*(double *const *)at)[i]);
    else
        lua_pushstring(L, (*(const char **const *)at)[i]);
}

static void push_struct(lua_State *L, const fpa_field *fields, const void *of)
{
    lua_newtable(L);
    set_fields(L, fields, of);
}

static void push_several(lua_State *L, const fpa_field *field, const void *of)
{
    const int count = count_of(field, of);
    const char *at = member(field, of);
    const char *first = field->pointer ? *(const char *const *)at : at;
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        if (field->kind == FIELD_STRUCTS)
            push_struct(L, field->fields, first + (size_t)i * field->size);
        else
            push_element(L, field, at, i);
        lua_rawseti(L, -2, i + 1);
    }
}

static void push_field(lua_State *L, const fpa_field *field, const void *of)
{
    const void *at = member(field, of);
    switch (field->kind) {
    case FIELD_INT:
        lua_pushinteger(L, *(const int *)at + field->value);
        break;
    case FIELD_LONG:
        lua_pushinteger(L, *(const int64_t *)at);
        break;
    case FIELD_BOOL:
        lua_pushboolean(L, *(const bool *)at);
        break;
    case FIELD_DOUBLE:
        lua_pushnumber(L, *(const double *)at);
        break;
    case FIELD_TEXT:
        lua_pushstring(L, *(const char *const *)at);
        break;
    case FIELD_VALUE:
        lua_pushinteger(L, field->value);
        break;
    case FIELD_STRUCT:
        push_struct(L, field->fields, at);
        break;
    default:
        push_several(L, field, of);
    }
}

void set_fields(lua_State *L, const fpa_field *fields, const void *of)
{
    for (const fpa_field *field = fields; field->name; field++) {
        push_field(L, field, of);
        lua_setfield(L, -2, field->name);
    }
}

void set_field_set(lua_State *L, const fpa_field_set *set)
{
    if (!set->table) {
        if (set->of)
            set_fields(L, set->fields, set->of);
        return;
    }
    if (set->of)
        push_struct(L, set->fields, set->of);
    else
        lua_pushboolean(L, false);
    lua_setfield(L, -2, set->table);
}

/* ---- what is computed ---- */

/* Index of a run-time matrix among the launch's weights. */
static int weight_index(const fpa_head *head, int matrix)
{
    int index = 0;
    for (int i = 0; i < matrix; i++)
        index += head->matrices[i].kind != FPA_MATRIX_CONSTANT;
    return index;
}

void push_projection(lua_State *L, const fpa_head *head, const fpa_projection *projection, const int *row)
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
        lua_pushnumber(L, weighted->gram);
        lua_setfield(L, -2, "gram");
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
        lua_pushnumber(L, score->monomials[i].weight.value);
        lua_setfield(L, -2, "weight");
        push_integers(L, score->monomials[i].power, score->dot_count);
        lua_setfield(L, -2, "power");
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "monomials");
}

void push_trainable(lua_State *L, const fpa_head *written)
{
    int count = 0;
    lua_newtable(L);
    for (int m = 0; m < written->matrix_count; m++) {
        const fpa_matrix *matrix = &written->matrices[m];
        const bool diagonal = matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL;
        if (matrix->kind == FPA_MATRIX_CONSTANT)
            continue;
        lua_createtable(L, 0, 2);
        set_integer(L, "entries", (lua_Integer)(diagonal ? 1 : matrix->rows) * matrix->cols);
        set_boolean(L, "per_head", matrix->per_head);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "trainable");
}
