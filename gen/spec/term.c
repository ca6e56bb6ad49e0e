/* term {...}: weight * product of branches; and scaled(weight, terms). */
#include "value.h"

#include "script.h"

static const char *const term_fields[] = {"weight", NULL};

static spec_term *push_term(lua_State *L, int line, int branch_count, fpa_number weight)
{
    spec_term *term = lua_newuserdatauv(L, sizeof *term + number_bytes(weight), branch_count);
    *term = (spec_term){.line = line, .branch_count = branch_count, .weight = number_place(term + 1, weight)};
    luaL_setmetatable(L, SPEC_TERM);
    return term;
}

/* The weight at index, a rational number of any sign. */
static fpa_number check_weight(lua_State *L, int index)
{
    spec_exact weight = {0};
    if (!spec_to_exact(L, index, &weight))
        script_refuse(L, 0, "weight is %s, but a finite number is needed", spec_describe(L, index));
    if (weight.root)
        script_refuse(L, 0, "weight is %s, but it must be rational; roots are entries of diagonal",
                      spec_describe(L, index));
    return weight.value;
}

/* Makes entry i of the table at index 1 user value i of the term on top of the stack. */
static void set_branch(lua_State *L, int i)
{
    lua_rawgeti(L, 1, i);
    if (!luaL_testudata(L, -1, SPEC_BRANCH))
        script_refuse(L, 0,
                      "branch %d of term is %s, but a branch is made by identity, select, diagonal, dense, "
                      "trainable or coordinates",
                      i, spec_describe(L, -1));
    lua_setiuservalue(L, -2, i);
}

/* term { branch ..., weight = w } */
static int make_term(lua_State *L)
{
    fpa_number weight = number_int(1);
    arena_free(spec_numbers(L));
    spec_fields(L, 1, "term", term_fields, true);
    lua_Unsigned count = lua_rawlen(L, 1);
    if (count > HEAD_MAX_BRANCHES)
        return script_refuse(L, 0, "term has %I branches (allowed are 0..%d)", (lua_Integer)count,
                             HEAD_MAX_BRANCHES);
    lua_getfield(L, 1, "weight");
    if (!lua_isnil(L, -1))
        weight = check_weight(L, -1);
    push_term(L, script_line(L), (int)count, weight);
    for (int i = 1; i <= (int)count; i++)
        set_branch(L, i);
    return 1;
}

/* Pushes a copy of the term at index with its weight multiplied by `weight`; it keeps its line. */
static void push_scaled_term(lua_State *L, int index, fpa_number weight)
{
    const spec_term *term = lua_touserdata(L, index);
    push_term(L, term->line, term->branch_count,
              spec_checked(L, number_mul(spec_numbers(L), term->weight, weight)));
    for (int i = 1; i <= term->branch_count; i++) {
        lua_getiuservalue(L, index, i);
        lua_setiuservalue(L, -2, i);
    }
}

enum { MAX_NESTING = 32 };

/* Pushes a scaled copy of the term or list at index; a list keeps its d and block. */
static void push_scaled(lua_State *L, int index, fpa_number weight, int depth)
{
    if (luaL_testudata(L, index, SPEC_TERM)) {
        push_scaled_term(L, index, weight);
        return;
    }
    if (!lua_istable(L, index) || depth > MAX_NESTING)
        script_refuse(L, 0, "scaled(weight, terms) takes a term or a list of terms, not %s",
                      spec_describe(L, index));
    luaL_checkstack(L, 8, "term lists are nested too deeply");
    lua_newtable(L);
    int list = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        if (lua_type(L, -1) == LUA_TSTRING)
            lua_pushvalue(L, -2);
        else
            push_scaled(L, lua_gettop(L) - 1, weight, depth + 1);
        lua_rawset(L, list);
    }
}

/* scaled(weight, terms) */
static int make_scaled(lua_State *L)
{
    arena_free(spec_numbers(L));
    lua_settop(L, 2);
    push_scaled(L, 2, check_weight(L, 1), 0);
    return 1;
}

const luaL_Reg spec_term_functions[] = {{"term", make_term}, {"scaled", make_scaled}, {NULL, NULL}};
