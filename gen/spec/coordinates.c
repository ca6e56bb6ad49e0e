/* coordinates {...}: rows that are computed by projections, a map and a function of the position, and that
 * branches of a head with a lift use; and branch:map(relu), short for one projection with a map. */
#include "value.h"

#include <string.h>

#include "script.h"

static const char *const coordinates_fields[] = {"map",   "map_q",     "map_k",  "inner",  "square",
                                                 "shift", "gain",      "gain_q", "gain_k", "angle",
                                                 "phase", "amplitude", NULL};
static const char *const weight_fields[SPEC_WEIGHTS] = {"angle", "phase", "amplitude"};

/* ---- maps ---- */

/* feature_map "relu": makes the values that the vocabulary calls relu, exp ... */
static int make_map(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    for (int map = 0; map < FPA_MAPS; map++)
        if (strcmp(map_name((fpa_map)map), name) == 0) {
            spec_map *value = lua_newuserdatauv(L, sizeof *value, 0);
            value->map = (fpa_map)map;
            luaL_setmetatable(L, SPEC_MAP);
            return 1;
        }
    return script_refuse(L, 0, "there is no map '%s'", name);
}

/* Pops the map on top of the stack; the constructor identity stands for the map that changes nothing. */
static fpa_map check_map(lua_State *L, const char *name)
{
    const spec_map *value = luaL_testudata(L, -1, SPEC_MAP);
    if (!value && lua_tocfunction(L, -1) != spec_make_identity)
        script_refuse(
            L, 0,
            "%s of coordinates is %s, but a map is one of identity, relu, elu_plus_one, softplus, exp, "
            "silu and one",
            name, spec_describe(L, -1));
    lua_pop(L, 1);
    return value ? value->map : FPA_MAP_IDENTITY;
}

static fpa_map field_map(lua_State *L, int table, const char *name, fpa_map missing)
{
    if (lua_getfield(L, table, name) != LUA_TNIL)
        return check_map(L, name);
    lua_pop(L, 1);
    return missing;
}

/* ---- factors ---- */

static bool is_projection(lua_State *L, int index)
{
    const spec_branch *branch = luaL_testudata(L, index, SPEC_BRANCH);
    return branch && branch->kind != FPA_BRANCH_COORDINATES;
}

/* Whether the value is a complex factor: { re, im }, both dense and of the same shape. */
static bool is_pair(lua_State *L, int index)
{
    bool dense = lua_istable(L, index) && lua_rawlen(L, index) == 2;
    for (int i = 1; i <= 2 && dense; i++) {
        lua_rawgeti(L, index, i);
        dense =
            is_projection(L, -1) && ((const spec_branch *)lua_touserdata(L, -1))->kind == FPA_BRANCH_DENSE;
        lua_pop(L, 1);
    }
    return dense;
}

static const spec_branch *entry_of(lua_State *L, int index, int entry)
{
    lua_rawgeti(L, index, entry);
    const spec_branch *branch = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return branch;
}

static void check_pair(lua_State *L, int index, int factor)
{
    const spec_branch *re = entry_of(L, index, 1), *im = entry_of(L, index, 2);
    if (re->width != im->width || re->listed != im->listed || re->heads != im->heads)
        script_refuse(L, 0,
                      "factor %d of coordinates has a real part of %d x %d, but an imaginary one of %d x %d",
                      factor, re->width, re->listed, im->width, im->listed);
}

/* Pops factor i from the stack and stores it in the branch at index. */
static void set_factor(lua_State *L, int index, spec_branch *branch, int i)
{
    spec_part *part = &branch->part;
    const bool pair = is_pair(L, lua_gettop(L));
    if (!pair && !is_projection(L, -1))
        script_refuse(
            L, 0,
            "factor %d of coordinates is %s, but a factor is made by identity, select, diagonal, dense or "
            "trainable, or is a pair { real, imaginary } of dense",
            i, spec_describe(L, -1));
    if (i > 1 && pair != part->is_complex)
        script_refuse(L, 0, "factor %d of coordinates is %s, but factor 1 is %s: all are complex, or none", i,
                      pair ? "complex" : "real", pair ? "real" : "complex");
    part->is_complex = pair;
    if (!pair) {
        lua_setiuservalue(L, index, i);
        return;
    }
    const int top = lua_gettop(L);
    check_pair(L, top, i);
    lua_rawgeti(L, top, 1);
    lua_setiuservalue(L, index, i);
    lua_rawgeti(L, top, 2);
    lua_setiuservalue(L, index, part->factor_count + i);
    lua_settop(L, top - 1);
}

/* ---- weights of the position ---- */

/* Pushes the weight of a field: a name alone stands for trainable weights of each key/value head. */
static void push_named(lua_State *L, const char *field)
{
    char name[HEAD_MAX_NAME + 1];
    lua_createtable(L, 0, 1);
    lua_insert(L, -2);
    lua_setfield(L, -2, "name");
    spec_field_name(L, lua_gettop(L), field, name);
    lua_pop(L, 1);
    spec_branch *branch = spec_push_branch(L, (spec_shape){.kind = FPA_BRANCH_TRAINABLE});
    memcpy(branch->name, name, sizeof name);
}

/* The field's value becomes user value `at` of the branch at index, as a branch. */
static void set_weight(lua_State *L, int table, int index, const char *field, int at)
{
    if (lua_getfield(L, table, field) == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (lua_type(L, -1) == LUA_TSTRING)
        push_named(L, field);
    const spec_branch *weight = luaL_testudata(L, -1, SPEC_BRANCH);
    if (!weight || weight->bias || (weight->kind != FPA_BRANCH_DENSE && weight->kind != FPA_BRANCH_TRAINABLE))
        script_refuse(
            L, 0,
            "%s of coordinates is %s, but it is trainable {...}, dense {...}, or the name of weights given "
            "at run time",
            field, spec_describe(L, -1));
    lua_setiuservalue(L, index, at);
}

static void set_weights(lua_State *L, int table, int index, const spec_part *part)
{
    const int first = part->factor_count * (part->is_complex ? 2 : 1) + 1;
    for (int w = 0; w < SPEC_WEIGHTS; w++)
        set_weight(L, table, index, weight_fields[w], first + w);
    for (int w = 1; w < SPEC_WEIGHTS; w++) {
        const bool stray = lua_getiuservalue(L, index, first + w) != LUA_TNIL &&
                           lua_getiuservalue(L, index, first) == LUA_TNIL;
        if (stray)
            script_refuse(
                L, 0, "coordinates have the field %s, but no angle: both are of a function of the position",
                weight_fields[w]);
        lua_settop(L, index);
    }
}

/* ---- the constructor ---- */

static void read_numbers(lua_State *L, int table, spec_part *part)
{
    part->inner = spec_field_float(L, table, "coordinates", "inner", 1);
    part->square = spec_field_float(L, table, "coordinates", "square", 0);
    part->shift = spec_field_float(L, table, "coordinates", "shift", 0);
    const double gain = spec_field_float(L, table, "coordinates", "gain", 1);
    part->gain[FPA_QUERY] = spec_field_float(L, table, "coordinates", "gain_q", gain);
    part->gain[FPA_KEY] = spec_field_float(L, table, "coordinates", "gain_k", gain);
    const fpa_map map = field_map(L, table, "map", FPA_MAP_IDENTITY);
    part->map[FPA_QUERY] = field_map(L, table, "map_q", map);
    part->map[FPA_KEY] = field_map(L, table, "map_k", map);
}

/* A complex part consists of products alone: maps and other fields are for real parts. */
static void check_complex(lua_State *L, int table)
{
    static const char *const real[] = {"map",   "map_q", "map_k", "inner",     "square",
                                       "shift", "angle", "phase", "amplitude", NULL};
    for (int i = 0; real[i]; i++)
        if (lua_getfield(L, table, real[i]) != LUA_TNIL)
            script_refuse(L, 0, "complex coordinates have no field %s; they have gain, gain_q and gain_k",
                          real[i]);
    lua_settop(L, 2);
}

/* coordinates { factor, ..., map =, ... }, the table at index 1. */
static int make_coordinates(lua_State *L)
{
    lua_settop(L, 1);
    spec_fields(L, 1, "coordinates", coordinates_fields, true);
    const lua_Unsigned count = lua_rawlen(L, 1);
    if (count < 1 || count > HEAD_MAX_BRANCHES)
        return script_refuse(L, 0, "coordinates have %I factors (allowed are 1..%d)", (lua_Integer)count,
                             HEAD_MAX_BRANCHES);
    spec_branch *branch = spec_push_branch(
        L, (spec_shape){.kind = FPA_BRANCH_COORDINATES, .values = 2 * (int)count + SPEC_WEIGHTS});
    branch->part.factor_count = (int)count;
    for (int i = 1; i <= (int)count; i++) {
        lua_rawgeti(L, 1, i);
        set_factor(L, 2, branch, i);
    }
    read_numbers(L, 1, &branch->part);
    if (branch->part.is_complex)
        check_complex(L, 1);
    set_weights(L, 1, 2, &branch->part);
    lua_settop(L, 2);
    return 1;
}

/* ---- branch:map(relu), branch:map { q = exp, k = relu } ---- */

static void move_field(lua_State *L, int from, const char *name, int to, const char *field)
{
    lua_getfield(L, from, name);
    lua_setfield(L, to, field);
}

static int map_branch(lua_State *L)
{
    static const char *const sides[] = {"q", "k", NULL};
    lua_settop(L, 2);
    if (!is_projection(L, 1))
        return script_refuse(
            L, 0,
            "map takes identity, select, diagonal, dense or trainable, not %s; coordinates {...} "
            "have the fields map, map_q and map_k",
            lua_type(L, 1) == LUA_TUSERDATA ? "coordinates" : spec_describe(L, 1));
    lua_createtable(L, 1, 2);
    lua_pushvalue(L, 1);
    lua_rawseti(L, 3, 1);
    if (lua_istable(L, 2)) {
        spec_fields(L, 2, "map", sides, false);
        move_field(L, 2, "q", 3, "map_q");
        move_field(L, 2, "k", 3, "map_k");
    } else {
        if (lua_isnil(L, 2))
            return script_refuse(L, 0,
                                 "map needs a map: branch:map(relu), or branch:map { q = exp, k = relu }");
        lua_pushvalue(L, 2);
        lua_setfield(L, 3, "map");
    }
    lua_replace(L, 1);
    return make_coordinates(L);
}

/* __index of branches: finds a method by name. */
static int find_method(lua_State *L)
{
    if (lua_type(L, 2) != LUA_TSTRING || strcmp(lua_tostring(L, 2), "map") != 0)
        return script_refuse(L, 0, "a branch has no %s; it has map: branch:map(relu)", spec_describe(L, 2));
    lua_pushcfunction(L, map_branch);
    return 1;
}

const luaL_Reg spec_coordinates_functions[] = {
    {"coordinates", make_coordinates}, {"feature_map", make_map}, {NULL, NULL}};

void spec_coordinates_open(lua_State *L)
{
    luaL_newmetatable(L, SPEC_MAP);
    luaL_getmetatable(L, SPEC_BRANCH);
    lua_pushcfunction(L, find_method);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 2);
}
