/* Checks the fields of the tables that constructors take: their names and values. */
#include "value.h"

#include <math.h>
#include <string.h>

#include "base/nearest.h"
#include "script.h"

/* Pushes a list of names: "d, dv, terms". */
static const char *join(lua_State *L, const char *const *names)
{
    lua_pushstring(L, *names ? *names : "none");
    while (*names && *++names) {
        lua_pushfstring(L, ", %s", *names);
        lua_concat(L, 2);
    }
    return lua_tostring(L, -1);
}

static bool is_name(const char *word, const char *const *names)
{
    while (*names && strcmp(*names, word) != 0)
        names++;
    return *names != NULL;
}

static void refuse_field(lua_State *L, const char *what, const char *word, const char *const *names)
{
    const char *nearest = nearest_name(word, names), *all = join(L, names);
    if (nearest)
        script_refuse(L, 0, "%s has no field '%s'; did you mean '%s'? (fields: %s)", what, word, nearest,
                      all);
    script_refuse(L, 0, "%s has no field '%s' (fields: %s)", what, word, all);
}

/* Checks the key at -2 of a table that is being traversed. */
static void check_key(lua_State *L, int table, const char *what, const char *const *names, bool list)
{
    lua_Integer length = (lua_Integer)lua_rawlen(L, table);

    if (lua_type(L, -2) == LUA_TSTRING) {
        if (!is_name(lua_tostring(L, -2), names))
            refuse_field(L, what, lua_tostring(L, -2), names);
        return;
    }
    if (!list) {
        const char *value = spec_describe(L, -1);
        script_refuse(L, 0, "%s has named fields only, but %s is given without a name (fields: %s)", what,
                      value, join(L, names));
    }
    if (!lua_isinteger(L, -2) || lua_tointeger(L, -2) < 1 || lua_tointeger(L, -2) > length)
        script_refuse(L, 0, "the list of %s has a gap, or an index that is not 1, 2, 3 ...", what);
}

void spec_fields(lua_State *L, int table, const char *what, const char *const *names, bool list)
{
    if (!lua_istable(L, table))
        script_refuse(L, 0, "%s takes one table, %s {...}, not %s", what, what, spec_describe(L, table));
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
        check_key(L, table, what, names, list);
}

int64_t spec_field_whole(lua_State *L, int table, const char *what, const char *name, int64_t low,
                         int64_t high, int64_t missing)
{
    int64_t value = missing;

    lua_getfield(L, table, name);
    if (lua_isnil(L, -1) && missing == SPEC_REQUIRED)
        script_refuse(L, 0, "%s needs %s, an integer of %I..%I", what, name, (lua_Integer)low,
                      (lua_Integer)high);
    if (!lua_isnil(L, -1) && (!spec_to_whole(L, -1, &value) || value < low || value > high))
        script_refuse(L, 0, "%s of %s is %s, but an integer of %I..%I is allowed", name, what,
                      spec_describe(L, -1), (lua_Integer)low, (lua_Integer)high);
    lua_pop(L, 1);
    return value;
}

double spec_field_double(lua_State *L, int table, const char *what, const char *name, double missing)
{
    double result = missing;

    lua_getfield(L, table, name);
    if (!lua_isnil(L, -1) && !spec_to_double(L, -1, &result))
        script_refuse(L, 0, "%s of %s is %s, but a finite number is needed", name, what,
                      spec_describe(L, -1));
    lua_pop(L, 1);
    return result;
}

double spec_field_float(lua_State *L, int table, const char *what, const char *name, double missing)
{
    const double result = spec_field_double(L, table, what, name, missing);
    if (!isfinite((float)result) || (result != 0 && (float)result == 0))
        script_refuse(
            L, 0, "%s of %s is %f, but kernels compute in float32, whose magnitudes are 1.4e-45 to 3.4e38",
            name, what, result);
    return result;
}

bool spec_field_flag(lua_State *L, int table, const char *what, const char *name, bool missing)
{
    bool value = missing;

    lua_getfield(L, table, name);
    if (!lua_isnil(L, -1) && !lua_isboolean(L, -1))
        script_refuse(L, 0, "%s of %s is %s, but true or false is needed", name, what, spec_describe(L, -1));
    if (!lua_isnil(L, -1))
        value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

int spec_field_word(lua_State *L, int table, const char *what, const char *name, const char *const *words,
                    int missing)
{
    int index = 0;

    lua_getfield(L, table, name);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return missing;
    }
    if (lua_type(L, -1) != LUA_TSTRING || !is_name(lua_tostring(L, -1), words)) {
        const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        const char *nearest = nearest_name(text, words), *given = spec_describe(L, -1);
        if (nearest)
            script_refuse(L, 0, "%s of %s is %s; did you mean '%s'? (allowed: %s)", name, what, given,
                          nearest, join(L, words));
        script_refuse(L, 0, "%s of %s is %s (allowed: %s)", name, what, given, join(L, words));
    }
    while (strcmp(words[index], lua_tostring(L, -1)) != 0)
        index++;
    lua_pop(L, 1);
    return index;
}

static bool is_identifier(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return *name && !(*name >= '0' && *name <= '9') && name[strspn(name, letters)] == '\0';
}

void spec_field_name(lua_State *L, int table, const char *what, char name[HEAD_MAX_NAME + 1])
{
    size_t length = 0;

    lua_getfield(L, table, "name");
    if (lua_isnil(L, -1))
        script_refuse(L, 0, "%s needs a name: name = \"...\"", what);
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : "";
    if (!is_identifier(text) || length > HEAD_MAX_NAME || strlen(text) != length)
        script_refuse(L, 0,
                      "name of %s is %s, but a name is letters, digits and _, no digit first, at most %d",
                      what, spec_describe(L, -1), HEAD_MAX_NAME);
    memcpy(name, text, length + 1);
    lua_pop(L, 1);
}

/* ---- the same for constructors written in Lua ---- */

enum { MAX_FIELDS = 32 };

/* fields(what, options, name ...): checks that options is a table with no other fields. */
static int check_fields(lua_State *L)
{
    const char *names[MAX_FIELDS + 1] = {NULL};
    const char *what = luaL_checkstring(L, 1);

    for (int i = 3; i <= lua_gettop(L) && i < 3 + MAX_FIELDS; i++)
        names[i - 3] = luaL_checkstring(L, i);
    spec_fields(L, 2, what, names, false);
    return 0;
}

/* whole(what, options, name, low, high [, missing]) -> integer. */
static int read_whole(lua_State *L)
{
    int64_t missing = luaL_optinteger(L, 6, SPEC_REQUIRED);
    const char *what = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 3);

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_pushinteger(
        L, spec_field_whole(L, 2, what, name, luaL_checkinteger(L, 4), luaL_checkinteger(L, 5), missing));
    return 1;
}

const luaL_Reg spec_field_functions[] = {{"fields", check_fields}, {"whole", read_whole}, {NULL, NULL}};
